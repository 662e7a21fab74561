from dpcal.commands.releasing.answering import (
    Release as Release,
    Request as Request,
    answered as answered,
)
