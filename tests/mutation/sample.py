"""A test that does not see every mistake: what the tool for mutation testing is tried on."""

from recometer.metrics.cutoffs import misplaced_cutoff


def test_a_cutoff_at_the_end() -> None:
    assert misplaced_cutoff("ndcg10", {"ndcg": "NDCG"}.get).endswith("an @: NDCG@10.")
