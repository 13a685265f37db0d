"""A weak test, which mutants survive, for tests of the mutation testing tool."""

from recometer.metrics.cutoffs import misplaced_cutoff


def test_hint_corrects_the_cutoff() -> None:
    assert misplaced_cutoff("ndcg10", {"ndcg": "NDCG"}.get).endswith("an @: NDCG@10.")
