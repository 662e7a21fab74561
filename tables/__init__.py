"""Private training on a table: records that an optimizer takes, and a model that predicts.

A schema holds the public facts of a table: types, ranges, categories, classes, and replacements of
missing values. All coding of a record follows from the schema and from this record, so that coding
costs no privacy.

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

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.tables.api import release as release, train as train
    from dpcal.tables.coding import REACH as REACH, Coding as Coding
    from dpcal.tables.drafting import draft as draft
    from dpcal.tables.fit import Fitted as Fitted
    from dpcal.tables.made_up import example as example
    from dpcal.tables.model import Model as Model, load_model as load_model
    from dpcal.tables.reading import Source as Source, table_of as table_of
    from dpcal.tables.records import Records as Records
    from dpcal.tables.releasing.answering import Release as Release
    from dpcal.tables.schema import Column as Column, Schema as Schema, schema_of as schema_of
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
