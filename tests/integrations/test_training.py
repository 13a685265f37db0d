"""Callbacks evaluate models in the training loops of Lightning and Keras."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import recometer as rm

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

N_USERS, N_ITEMS = 30, 40


@pytest.fixture(scope="module")
def data():
    """Draw training and test data, in which each user likes half of the items."""
    rng = np.random.default_rng(0)
    likes = (np.arange(N_USERS)[:, None] % 2) == (np.arange(N_ITEMS)[None] % 2)
    kind = rng.random(likes.shape)
    return likes & (kind < 0.4), likes & (kind > 0.7)


@pytest.fixture(scope="module")
def evaluator(data):
    train, test = (rm.Interactions.of(part.astype(np.float32)) for part in data)
    return rm.Evaluator(test, train=train, metrics="ndcg@5 recall@10")


@pytest.fixture
def module(lightning, torch, data):
    """Return the class of a Lightning module that learns factors."""
    train = torch.from_numpy(data[0].astype(np.float32))

    class Module(lightning.pytorch.LightningModule):
        def __init__(self, rate=0.05):
            super().__init__()
            self.users = torch.nn.Embedding(N_USERS, 8)
            self.items = torch.nn.Embedding(N_ITEMS, 8)
            self.drop = torch.nn.Dropout(0.1)
            self.rate, self.seen = rate, []

        def score_users(self, rows):
            assert not self.drop.training
            assert not torch.is_grad_enabled()
            return self.drop(self.users(torch.as_tensor(rows))) @ self.items.weight.T

        def training_step(self, rows, number):
            scores = self.drop(self.users(rows)) @ self.items.weight.T
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, train[rows])
            self.log("loss", loss)
            return loss

        def validation_step(self, rows, number):
            pass

        def test_step(self, rows, number):
            pass

        def on_train_epoch_end(self):
            assert self.drop.training

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=self.rate)

    torch.manual_seed(1)
    return Module


@pytest.fixture
def loader(torch):
    return torch.utils.data.DataLoader(torch.arange(N_USERS), batch_size=10)


@pytest.fixture
def trainer(lightning, tmp_path):
    def make(*callbacks, epochs=6, **options):
        return lightning.pytorch.Trainer(
            max_epochs=epochs,
            callbacks=list(callbacks),
            accelerator="cpu",
            default_root_dir=tmp_path,
            enable_progress_bar=False,
            enable_model_summary=False,
            **{"logger": False, "enable_checkpointing": False, **options},
        )

    return make


class Names:
    """A callback that records the names logged at the end of each validation."""

    def __init__(self, lightning):
        self.values = values = []

        class Watch(lightning.pytorch.Callback):
            def on_validation_end(self, trainer, pl_module):
                if not trainer.sanity_checking:
                    values.append(float(trainer.callback_metrics["val_ndcg_at_5"]))

        self.callback = Watch()


def test_lightning_logs_the_same_values_as_evaluate(
    lightning, torch, trainer, module, loader, evaluator, tmp_path
):
    from recometer.integrations.lightning import RecometerCallback

    callback, watch, model = (
        RecometerCallback(evaluator, test=evaluator),
        Names(lightning),
        module(),
    )
    best = lightning.pytorch.callbacks.ModelCheckpoint(
        tmp_path, monitor="val_ndcg_at_5", mode="max", save_top_k=1
    )
    run = trainer(callback, watch.callback, best, enable_checkpointing=True)
    run.fit(model, loader, loader)
    assert len(watch.values) == 6
    assert len(set(watch.values)) > 1
    factors = [part.weight.detach() for part in (model.users, model.items)]
    expected = evaluator(rm.Factors(*factors))
    np.testing.assert_allclose(callback.result["ndcg@5"], expected["ndcg@5"], atol=1e-12)
    assert watch.values[-1] == pytest.approx(expected.mean()["ndcg@5"], abs=1e-6)
    assert float(best.best_model_score) == pytest.approx(max(watch.values))
    assert set(run.validate(model, loader, verbose=False)[0]) == {
        "val_ndcg_at_5",
        "val_recall_at_10",
    }
    assert run.test(model, loader, verbose=False)[0]["test_recall_at_10"] == pytest.approx(
        expected.mean()["recall@10"], abs=1e-6
    )


def test_lightning_stops_early(lightning, trainer, module, loader, evaluator):
    from recometer.integrations.lightning import RecometerCallback

    stop = lightning.pytorch.callbacks.EarlyStopping("val_ndcg_at_5", mode="max", patience=2)
    callback = RecometerCallback(
        evaluator, lambda module: rm.Factors(module.users.weight, module.items.weight)
    )
    run = trainer(callback, stop, epochs=20)
    run.fit(module(rate=0.0), loader, loader)
    assert run.current_epoch == 3  # no later epoch was better than the first


def test_lightning_evaluates_after_training_epochs_without_validation(
    lightning, trainer, module, loader, evaluator
):
    from recometer.integrations.lightning import RecometerCallback

    callback = RecometerCallback(evaluator, prefix="", every_n_epochs=2)
    run = trainer(callback, epochs=2)
    model = module()
    model.validation_step = None
    run.fit(model, loader)
    assert float(run.callback_metrics["ndcg_at_5"]) == pytest.approx(
        callback.result.mean()["ndcg@5"], abs=1e-6
    )


def test_lightning_logs_a_torchmetrics_metric(lightning, torch, trainer, module, loader, evaluator):
    from recometer.integrations.torchmetrics import RankingMetrics

    class Streaming(module):
        def __init__(self):
            super().__init__()
            self.metric = RankingMetrics(evaluator)

        def validation_step(self, rows, number):
            self.metric.update(self.score_users(rows), users=rows)

        def on_validation_epoch_end(self):
            self.log_dict(self.metric.compute())
            self.metric.reset()

    model = Streaming()
    run = trainer(epochs=2)
    run.fit(model, loader, loader)
    factors = [part.weight.detach() for part in (model.users, model.items)]
    assert float(run.callback_metrics["ndcg_at_5"]) == pytest.approx(
        evaluator(rm.Factors(*factors)).mean()["ndcg@5"], abs=1e-6
    )


PROCESSES = """
    import sys
    import numpy as np, torch, lightning
    import recometer as rm
    from recometer.integrations.lightning import RecometerCallback
    from recometer.integrations.torchmetrics import RankingMetrics

    kind = np.random.default_rng(0).random((31, 40))
    train, test = kind < 0.3, kind > 0.9
    evaluator = rm.Evaluator(test, train=train, metrics="ndcg@5")

    class Model(lightning.pytorch.LightningModule):
        def __init__(self):
            super().__init__()
            self.users, self.items = torch.nn.Embedding(31, 4), torch.nn.Embedding(40, 4)
            self.metric = RankingMetrics(evaluator)

        def score_users(self, rows):
            return self.users(torch.as_tensor(rows)) @ self.items.weight.T

        def training_step(self, rows, number):
            return self.score_users(rows).square().mean()

        def validation_step(self, rows, number):
            self.metric.update(self.score_users(rows), users=rows)

        def on_validation_epoch_end(self):
            self.log("streamed", self.metric.compute()["ndcg_at_5"])
            self.metric.reset()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.1)

    torch.manual_seed(0)
    loaders = [torch.utils.data.DataLoader(torch.arange(31), batch_size=4) for _ in range(2)]
    trainer = lightning.pytorch.Trainer(
        max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[
            RecometerCallback(evaluator),
            lightning.pytorch.callbacks.EarlyStopping("val_ndcg_at_5", mode="max"),
        ],
    )
    model = Model()
    trainer.fit(model, *loaders)
    whole = evaluator.mean(rm.Factors(model.users.weight, model.items.weight))["ndcg@5"]
    found = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert found["streamed"] == whole, (found, whole)
    assert abs(found["val_ndcg_at_5"] - whole) < 1e-6, (found, whole)
    open(f"{sys.argv[1]}/rank{trainer.global_rank}", "w").close()
"""


def test_lightning_counts_repeated_users_once_in_two_processes(lightning, tmp_path):
    """With 31 users and two processes, the sampler repeats one user, who must count only once."""
    script = tmp_path / "train.py"  # Lightning runs this script in both processes
    script.write_text(textwrap.dedent(PROCESSES), encoding="utf-8")
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=300)
    assert {path.name for path in tmp_path.glob("rank*")} == {"rank0", "rank1"}


def test_lightning_callback_rejects_invalid_arguments(lightning, evaluator):
    from recometer.integrations.lightning import RecometerCallback

    with pytest.raises(rm.InputTypeError, match="evaluator with test data, found Evaluator"):
        RecometerCallback(rm.Evaluator(metrics="rr"))
    with pytest.raises(rm.InputError, match="every_n_epochs=0"):
        RecometerCallback(evaluator, every_n_epochs=0)
    with pytest.raises(rm.InputError, match="every_n_epochs=True"):
        RecometerCallback(evaluator, every_n_epochs=True)
    with pytest.raises(rm.InputTypeError, match="evaluator with test data, found NoneType"):
        RecometerCallback(None, test=evaluator)
    with pytest.raises(rm.InputTypeError, match="source= is of type int"):
        RecometerCallback(evaluator, 3)
    with pytest.raises(rm.InputTypeError, match="prefix=3 must be a string"):
        RecometerCallback(evaluator, prefix=3)


def test_lightning_reports_errors_during_training(module, loader, trainer, evaluator):
    from recometer.integrations.lightning import RecometerCallback

    failing = RecometerCallback(evaluator, lambda module: module.nowhere)
    with pytest.raises(rm.ModelError, match="function source= raised AttributeError"):
        trainer(failing, epochs=1).fit(module(), loader, loader)
    callbacks = [RecometerCallback(evaluator), RecometerCallback(evaluator)]
    with pytest.raises(rm.InputError, match="is logged twice"):
        trainer(*callbacks, epochs=1).fit(module(), loader, loader)
    with pytest.warns(rm.DataWarning, match=r"training ended before epoch 3 \(every_n_epochs\)"):
        trainer(RecometerCallback(evaluator, every_n_epochs=3), epochs=1).fit(
            module(), loader, loader
        )


def keras_model(keras, rate=0.1):
    user, item = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    users, items = keras.layers.Embedding(N_USERS, 8), keras.layers.Embedding(N_ITEMS, 8)
    score = keras.layers.Dot(axes=1)([users(user), items(item)])
    model = keras.Model([user, item], keras.layers.Activation("sigmoid")(score))
    model.compile(optimizer=keras.optimizers.Adam(rate), loss="binary_crossentropy")
    return model, lambda _: rm.Factors(users.get_weights()[0], items.get_weights()[0])


def test_keras_logs_and_stops_early(keras, data, evaluator):
    from recometer.integrations.keras import RecometerCallback

    keras.utils.set_random_seed(1)
    users, items = np.indices(data[0].shape).reshape(2, -1)
    model, source = keras_model(keras)
    callback = RecometerCallback(evaluator, source, every_n_epochs=2)
    history = model.fit(
        [users, items], data[0].ravel(), epochs=8, verbose=0, batch_size=128, callbacks=[callback]
    ).history
    values = history["val_ndcg_at_5"]
    assert len(values) == 7  # the first epoch is not evaluated
    assert values[0] == values[1]
    assert values[-1] > values[0]
    assert values[-1] == evaluator(source(model)).mean()["ndcg@5"]

    model, source = keras_model(keras, rate=0.0)
    stop = keras.callbacks.EarlyStopping("val_recall_at_10", mode="max", patience=2)
    history = model.fit(
        [users, items],
        data[0].ravel(),
        epochs=9,
        verbose=0,
        batch_size=400,
        callbacks=[RecometerCallback(evaluator, source), stop],
    ).history
    assert len(history["val_recall_at_10"]) == 3


def test_keras_scores_can_come_from_predict(keras, data, evaluator):
    from recometer.integrations.keras import RecometerCallback

    model, source = keras_model(keras)

    def predicted(model):
        def score(rows):
            users = np.repeat(rows, N_ITEMS)
            pairs = [users, np.tile(np.arange(N_ITEMS), len(rows))]
            return model.predict(pairs, verbose=0).reshape(len(rows), N_ITEMS)

        return rm.Scores(score, n_users=N_USERS, n_items=N_ITEMS)

    callback = RecometerCallback(evaluator, predicted)
    callback.set_model(model)
    logs = {}
    callback.on_epoch_end(0, logs)
    assert logs["val_ndcg_at_5"] == pytest.approx(
        evaluator(source(model)).mean()["ndcg@5"], abs=0.02
    )
    with pytest.raises(rm.InputTypeError, match="expected a function of the model"):
        RecometerCallback(evaluator, None)
    with pytest.raises(rm.InputTypeError, match="found NoneType"):
        RecometerCallback(None, source)
    with pytest.raises(rm.InputTypeError, match="prefix=None must be a string"):
        RecometerCallback(evaluator, source, prefix=None)


def test_keras_reports_errors_during_training(keras, data, evaluator):
    from recometer.integrations.keras import RecometerCallback

    model, source = keras_model(keras)
    arrays = [np.zeros(1, int), np.zeros(1, int)], np.ones(1)

    def fit(*callbacks):
        return model.fit(*arrays, epochs=1, verbose=0, callbacks=list(callbacks)).history

    with pytest.raises(rm.ModelError, match="function source= raised ZeroDivisionError"):
        fit(RecometerCallback(evaluator, lambda model: 1 / 0))
    with pytest.raises(rm.InputError, match="'val_ndcg_at_5' is logged twice"):
        fit(RecometerCallback(evaluator, source), RecometerCallback(evaluator, source))
    history = fit(
        RecometerCallback(evaluator, source), RecometerCallback(evaluator, source, prefix="again_")
    )
    assert history["val_ndcg_at_5"] == history["again_ndcg_at_5"]
    with pytest.warns(rm.DataWarning, match=r"training ended before epoch 2 \(every_n_epochs\)"):
        fit(RecometerCallback(evaluator, source, every_n_epochs=2))
    with pytest.warns(rm.DataWarning, match="has no effect in evaluate"):
        model.evaluate(*arrays, verbose=0, callbacks=[RecometerCallback(evaluator, source)])
