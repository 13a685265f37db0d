"""A weak test, whose surviving mutants are used to test the mutation testing tool."""

from recometer.metrics.cutoffs import misplaced_cutoff


def test_hint_corrects_the_cutoff() -> None:
    assert misplaced_cutoff("ndcg10", {"ndcg": "NDCG"}.get).endswith("an @: NDCG@10.")
