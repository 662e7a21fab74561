from dpcal.tables.api import release as release, train as train
from dpcal.tables.coding import REACH as REACH, Coding as Coding
from dpcal.tables.drafting import (
    ROW_NUMBERS as ROW_NUMBERS,
    draft as draft,
    likely_target as likely_target,
)
from dpcal.tables.fit import Fitted as Fitted
from dpcal.tables.made_up import example as example
from dpcal.tables.model import Model as Model, load_model as load_model
from dpcal.tables.reading import Source as Source, table_of as table_of
from dpcal.tables.records import Records as Records, load as load
from dpcal.tables.releasing.answering import Release as Release
from dpcal.tables.schema import Column as Column, Schema as Schema
