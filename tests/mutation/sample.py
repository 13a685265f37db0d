"""A test that misses some mistakes, on which the mutation testing tool is tested."""

from recometer.metrics.cutoffs import misplaced_cutoff


def test_a_cutoff_at_the_end() -> None:
    assert misplaced_cutoff("ndcg10", {"ndcg": "NDCG"}.get).endswith("an @: NDCG@10.")
