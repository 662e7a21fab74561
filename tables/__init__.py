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

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
