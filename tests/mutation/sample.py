"""A weak test that mutants survive, for testing the mutation testing tool."""

from recometer.metrics.cutoffs import misplaced_cutoff


def test_hint_corrects_the_cutoff() -> None:
    assert misplaced_cutoff("ndcg10", {"ndcg": "NDCG"}.get).endswith("an @: NDCG@10.")
