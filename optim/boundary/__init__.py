"""The privacy boundary: the oracle, its batches and noise, and the ledger of its answers."""
