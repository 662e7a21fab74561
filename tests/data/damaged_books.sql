-- Statements that damage a book of budgets, one a line: each alone is told in one sentence.
DELETE FROM book WHERE name = 'composition'
DELETE FROM book WHERE name = 'key'
UPDATE book SET value = 'x' WHERE name = 'key'
UPDATE book SET value = 'x' WHERE name = 'version'
UPDATE book SET value = CAST(X'FFFE' AS TEXT) WHERE name = 'made'
UPDATE book SET value = 'both' WHERE name = 'neighboring_relation'
UPDATE book SET value = 'both' WHERE name = 'composition'
DELETE FROM totals
UPDATE totals SET epsilon = 'x'
UPDATE totals SET epsilon = -1.0
UPDATE totals SET delta = 2.0
UPDATE runs SET plan = '[]'
UPDATE runs SET plan = replace(hex(zeroblob(9999)), '0', '[')
UPDATE runs SET plan = CAST(X'FFFE' AS TEXT)
UPDATE runs SET plan = 1
UPDATE runs SET ledger = '[]'
UPDATE runs SET ledger = X'00'
UPDATE runs SET started = X'00'
UPDATE runs SET label = X'00'
UPDATE runs SET ended = X'00'
DROP TABLE runs
ALTER TABLE runs RENAME COLUMN plan TO other
