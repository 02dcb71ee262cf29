"""What a policy says of one column: its role and, of a quasi-identifier, how it is generalized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from shoal.core.schema import Role


class Column(BaseModel):
    """One column's part of the policy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Role = Field(
        description="`identifier`: removed; `quasi-identifier`: generalized, and counted to form classes; "
        "`sensitive`: released as it is, and looked at by models; `other`: released as it is."
    )
    hierarchy: str | dict[str, Any] | None = Field(
        None, description="How to generalize; a quasi-identifier needs one."
    )
    max_level: int | None = Field(
        None, ge=0, description="The search goes no higher; without it, to the hierarchy's height."
    )
    min_level: int | None = Field(None, ge=0, description="The search goes no lower; without it, to 0.")
    weight: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="How much the column's loss counts, above 0."
    )
    release_as: Literal["text", "bounds"] = Field(
        "text", description="Bands as text such as `45-49`, or as two numbers."
    )
    identifying: Literal[1, 2, 3] = Field(
        1,
        description="How well the column tells persons apart, `3` best: which combinations `mu-argus` tests; "
        "the other searches ignore it.",
    )

    @field_validator("hierarchy", mode="before")
    @classmethod
    def _keys_are_text(cls, value: Any) -> Any:
        """Let 1.1 as a group of a tree be the text that it is in YAML and JSON."""
        if isinstance(value, Mapping):
            return {str(key): cls._keys_are_text(inner) for key, inner in value.items()}
        return [cls._keys_are_text(inner) for inner in value] if isinstance(value, list) else value

    @field_validator("identifying", mode="before")
    @classmethod
    def _identifying_is_a_number(cls, value: Any) -> Any:
        """Refuse what is not a number, and true, which Python takes for 1."""
        if type(value) is not int or value not in (1, 2, 3):
            message = f"must be a whole number, 1, 2 or 3, got {value!r}"
            raise ValueError(message)
        return value

    @field_validator("max_level", "min_level", "weight", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any, about: ValidationInfo) -> Any:
        """Refuse true, which Python takes for 1."""
        if isinstance(value, bool):
            message = f"must be a {'number' if about.field_name == 'weight' else 'whole number'}, got {value}"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _fits_its_role(self) -> Column:
        asked = {"max_level", "min_level", "weight", "release_as", "identifying"} & self.model_fields_set
        if self.role is not Role.QUASI_IDENTIFIER and asked:
            message = "max_level, min_level, weight, release_as and identifying are for quasi-identifiers"
            raise ValueError(message)
        return self
