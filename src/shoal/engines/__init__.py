"""Engines, by name."""

from __future__ import annotations

from shoal.core.contracts import Engine
from shoal.registry import Registry

ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "duckdb": "shoal.engines.duckdb.engine:DuckDb",
        "postgres": "shoal.engines.postgres.engine:Postgres",
        "spark": "shoal.engines.spark.engine:Spark",
    },
)
