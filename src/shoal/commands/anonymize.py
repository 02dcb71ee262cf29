"""The command that de-identifies a table."""

from __future__ import annotations

from shoal.commands.argus import talk
from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    AlgorithmName,
    AsJson,
    Bom,
    Data,
    Delimiter,
    EngineName,
    Force,
    Generalize,
    Interactive,
    Limit,
    MemoryLimit,
    MetricName,
    Models,
    NodeOrOffer,
    Output,
    PolicyFile,
    Reveal,
    Seconds,
    SparkMaster,
    SpreadsheetSafe,
    WithMapping,
    WithReport,
)
from shoal.commands.reading import read_engine, read_generalize, read_node, read_policy
from shoal.commands.releases import note_semicolons, show_release
from shoal.display import print_json


def anonymize(
    data: Data,
    policy: PolicyFile,
    output: Output,
    model: Models = None,
    suppression_limit: Limit = None,
    metric: MetricName = None,
    algorithm: AlgorithmName = None,
    node: NodeOrOffer = None,
    generalize: Generalize = None,
    interactive: Interactive = False,
    seconds: Seconds = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    mapping: WithMapping = False,
    report: WithReport = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    delimiter: Delimiter = None,
    bom: Bom = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """De-identify a table: find the least loss, recode, count afresh, release."""
    from shoal.anonymize import anonymize as run

    with reporting(as_json, reveal):
        wanted = read_policy(policy, model, suppression_limit, metric, algorithm)
        wanted = read_generalize(wanted, generalize)
        chosen = read_node(node)
        place = read_engine(engine, spark_master, memory_limit)
        if interactive:
            wanted = talk(data, wanted, chosen, place, memory_limit, as_json=as_json)
    with reporting(as_json, reveal), progress_bar() as progress:
        release = run(
            data,
            wanted,
            output=output,
            force=force,
            node=chosen,
            mapping=mapping,
            report=report,
            spreadsheet_safe=spreadsheet_safe,
            delimiter=delimiter,
            bom=bom,
            engine=place,
            memory_limit=memory_limit,
            seconds=seconds,
            progress=progress,
        )
    if as_json:
        print_json(release.to_dict())
        return
    show_release(release)
    note_semicolons(data, output, delimiter, bom=bom)
