"""The columns of documents and of matches: found as Spark finds them, checked before anything runs.

match_schema(documents, kind="rows")      # the columns that match_documents will give
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from xsift.errors import XsiftError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ERROR_SCHEMA", "Columns", "Output", "match_schema", "quoted"]

Output = Literal["matches", "rows", "nodes", "expressions"]
STRINGS = ArrayType(StringType())
ERROR_SCHEMA = StructType(
    [
        StructField("code", StringType()),
        StructField("message", StringType()),
        StructField("line", IntegerType()),
        StructField("column", IntegerType()),
    ]
)
FAILURES_SCHEMA = ArrayType(
    StructType([StructField(name, StringType()) for name in ("subscription", "code", "message")])
)
ADDED: dict[str, dict[str, DataType]] = {  # made without DDL: workers have no JVM to parse it
    "matches": {"matches": STRINGS, "error": ERROR_SCHEMA, "failures": FAILURES_SCHEMA},
    "expressions": {"expressions": STRINGS, "error": ERROR_SCHEMA, "failures": FAILURES_SCHEMA},
    "rows": {"subscription": StringType(), "error": ERROR_SCHEMA},
    "nodes": {
        "subscription": StringType(),
        "path": StringType(),
        "element": IntegerType(),
        "fragment": StringType(),
        "error": ERROR_SCHEMA,
    },
}
"""For each kind of output the columns that it adds, under the names that they have unless others are asked for."""


@dataclass(frozen=True)
class Columns:
    """Which columns of the documents are read and carried along, and which are added."""

    xml: str
    label: str | None
    all: tuple[str, ...]
    """The names of all columns of the documents."""
    carried: tuple[StructField, ...]
    added: tuple[StructField, ...]
    names: Mapping[str, str]
    """The names of added columns, by the names that they have by default; all of them."""

    @property
    def schema(self) -> StructType:
        """The columns of the matches."""
        return StructType([*self.carried, *self.added])

    @property
    def odd(self) -> bool:
        """Whether a name has a dot or a backtick, or is there twice, in any case of its letters."""
        names = [*self.all, *self.names.values()]
        return any("." in name or "`" in name for name in names) or len({*map(str.lower, self.all)}) < len(self.all)

    def plainly(self) -> tuple[list[str], Columns]:
        """Plain names for all columns of the documents, and these columns under such names."""
        plain = [f"column{number}" for number in range(len(self.all))]
        at = dict(zip(self.all, plain, strict=True))
        kept = [name for name in self.all if name != self.xml or len(self.carried) == len(self.all)]
        numbers = [plain[place] for place, name in enumerate(self.all) if name in kept]
        carried = [
            StructField(name, it.dataType, it.nullable) for name, it in zip(numbers, self.carried, strict=True)
        ]
        names = {name: f"added{number}" for number, name in enumerate(self.names)}
        added = [StructField(name, it.dataType) for name, it in zip(names.values(), self.added, strict=True)]
        label = None if self.label is None else at[self.label]
        return plain, Columns(at[self.xml], label, tuple(plain), tuple(carried), tuple(added), names)

    @classmethod
    def of(
        cls,
        documents: DataFrame | StructType,
        xml: str = "xml",
        id: str | None = None,
        *,
        kind: str = "matches",
        keep_xml: bool = False,
        names: Mapping[str, str] | None = None,
    ) -> Columns:
        """Checked: raises an error that names the columns there are if one is missing, of the wrong type, or in the
        way."""
        if kind not in get_args(Output):
            raise ValueError(f"kind is {kind!r}; it can be " + ", ".join(map(repr, get_args(Output))))
        schema, exact = documents, False
        if not isinstance(schema, StructType):
            exact = str(schema.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
            schema = schema.schema
        fields = list(schema.fields)
        found = _resolved(fields, "xml", xml, exact)
        label = None if id is None else _resolved(fields, "id", id, exact).name
        if not isinstance(found.dataType, StringType | BinaryType | CharType | VarcharType):
            type_name = found.dataType.simpleString()
            raise XsiftError(
                "wrong-type", f"the column {xml!r} is {type_name}", hint="documents are string or binary"
            )
        carried = [field for field in fields if keep_xml or field.name != found.name]
        called = _names(kind, names)
        _check_free(carried, called, exact)
        added = [StructField(called[name], _type(name, of, found)) for name, of in ADDED[kind].items()]
        everything = tuple(field.name for field in fields)
        return cls(found.name, label, everything, tuple(carried), tuple(added), called)


def match_schema(
    documents: DataFrame | StructType,
    *,
    xml: str = "xml",
    kind: Output = "matches",
    keep_xml: bool = False,
    names: Mapping[str, str] | None = None,
) -> StructType:
    """The columns that match_documents gives for documents with these columns."""
    return Columns.of(documents, xml, kind=kind, keep_xml=keep_xml, names=names).schema


def quoted(name: str) -> str:
    """A column's name for Spark's expressions, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def _resolved(fields: list[StructField], option: str, name: str, exact: bool) -> StructField:
    """The column of a name; in any case of its letters, unless Spark is told to mind it."""
    found = [field for field in fields if field.name == name]
    if not found and not exact:
        found = [field for field in fields if field.name.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    there = ", ".join(repr(field.name) for field in fields) or "none"
    if not found:
        raise XsiftError(
            "missing-column", f"the documents have no column {name!r}", hint=f"{option}= can be one of {there}"
        )
    raise XsiftError("ambiguous-column", f"the documents have several columns {name!r}", hint="rename all but one")


def _names(kind: str, names: Mapping[str, str] | None) -> dict[str, str]:
    called = {name: name for name in ADDED[kind]}
    for name, wanted in (names or {}).items():
        if name not in {each for added in ADDED.values() for each in added}:
            raise XsiftError(
                "unknown-name", f"there is no output column {name!r}", hint=f"names= can have {', '.join(called)}"
            )
        if name in called:
            called[name] = wanted
    return called


def _check_free(carried: list[StructField], called: Mapping[str, str], exact: bool) -> None:
    taken = {field.name if exact else field.name.lower(): field.name for field in carried}
    for default, name in called.items():
        key = name if exact else name.lower()
        if key in taken:
            raise XsiftError(
                "column-exists",
                f"the documents have a column {taken[key]!r} already",
                hint=f"rename or drop it, or give the output another name: names={{{default!r}: …}}",
            )
        taken[key] = name


def _type(name: str, declared: DataType, xml: StructField) -> DataType:
    """The type of an added column; a fragment has that of the XML."""
    return BinaryType() if name == "fragment" and isinstance(xml.dataType, BinaryType) else declared
