from dpcal.tables.releasing.answering import Release as Release
