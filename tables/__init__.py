"""How does a table of people become records that an optimizer takes, and a model that answers?

A schema says what may be known of a table in public: types, ranges, categories, classes, and what
stands in for a missing value. Everything that is done to a record follows from the schema and that
record alone, so that it costs no privacy.

>>> from dpcal.tables import Coding, Schema
>>> schema = Schema.from_toml('''
... [columns.age]
... type = "number"
... range = [0, 120]
... impute = 60
... [columns.blood]
... type = "category"
... categories = ["A", "B", "0"]
... ''')
>>> coding = Coding(schema.columns)
>>> coding.names
['age', 'blood=A', 'blood=B', 'blood=0']
>>> coding.numbers({"age": [30.0, None], "blood": ["B", "A"]}).tolist()
[[-2.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
"""

from typing import TYPE_CHECKING

from dpcal import _lazy

if TYPE_CHECKING:
    from dpcal.tables.coding import REACH, Coding
    from dpcal.tables.drafting import draft
    from dpcal.tables.model import Model, load_model
    from dpcal.tables.reading import NotANumber, Source, table_of
    from dpcal.tables.records import Records, load
    from dpcal.tables.schema import Column, Schema

__all__ = [
    "REACH",
    "Coding",
    "Column",
    "Model",
    "NotANumber",
    "Records",
    "Schema",
    "Source",
    "draft",
    "load",
    "load_model",
    "table_of",
]

__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        "REACH": "dpcal.tables.coding",
        "Coding": "dpcal.tables.coding",
        "Column": "dpcal.tables.schema",
        "Model": "dpcal.tables.model",
        "NotANumber": "dpcal.tables.reading",
        "Records": "dpcal.tables.records",
        "Schema": "dpcal.tables.schema",
        "Source": "dpcal.tables.reading",
        "draft": "dpcal.tables.drafting",
        "load": "dpcal.tables.records",
        "load_model": "dpcal.tables.model",
        "table_of": "dpcal.tables.reading",
    },
)
