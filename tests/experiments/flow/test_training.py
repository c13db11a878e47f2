from dataclasses import replace

import pytest
from moving_dots import moving_dots

torch = pytest.importorskip("torch")

from cmaxslam_fbp.experiments.flow.network import FlowNet  # noqa: E402
from cmaxslam_fbp.experiments.flow.training import (  # noqa: E402
    Training,
    TrainingError,
    TrainingSettings,
    load_network,
)

SAMPLES = [moving_dots((5 - k, k - 3), seed=k, dots=40) for k in range(6)]
SETTINGS = TrainingSettings(steps=6, batch=2, crop=32, channels=4, judged_every=2)


def weights(training):
    return torch.cat([p.detach().flatten() for p in training.network.parameters()])


def test_the_network_has_half_a_million_parameters_and_any_degree():
    network = FlowNet()
    assert 0.45e6 < sum(p.numel() for p in network.parameters()) < 0.55e6
    assert FlowNet(degree=2, channels=4)(torch.zeros(3, 15, 32, 40)).shape == (3, 4, 32, 40)
    flow = network(torch.randn(2, 15, 64, 64))
    assert 0.3 < float(flow.detach().std()) < 10


def test_an_interrupted_training_goes_on_to_the_same_bits(tmp_path):
    whole = Training(SETTINGS, SAMPLES[:4], SAMPLES[4:])
    whole.run()
    path = tmp_path / "a" / "flow.pt"

    def stop(step, loss, look):
        if step == 5:  # after the look at 4
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Training(SETTINGS, SAMPLES[:4], SAMPLES[4:], checkpoint=path).run(stop)
    again = Training(SETTINGS, SAMPLES[:4], SAMPLES[4:], checkpoint=path)
    assert again.step == 4
    looks = again.run()
    assert torch.equal(weights(whole), weights(again))
    assert [look.step for look in looks] == [2, 4, 6]
    assert looks[-1].errors == whole.looks[-1].errors
    assert torch.equal(torch.cat([p.flatten() for p in load_network(path).parameters()]), weights(whole))
    assert Training(SETTINGS, SAMPLES[:4], SAMPLES[4:], checkpoint=path).is_done


def test_another_seed_is_another_training_and_leaves_the_generator_alone():
    state = torch.random.get_rng_state()
    one, other = (Training(replace(SETTINGS, seed=k, steps=1), SAMPLES[:4], SAMPLES[4:]) for k in (0, 1))
    assert not torch.equal(weights(one), weights(other))
    one.run()
    assert torch.equal(state, torch.random.get_rng_state())


def test_training_ends_early_where_nothing_is_gained():
    settings = replace(SETTINGS, steps=60, judged_every=1, learning_rate=1e-12, patience=3)
    training = Training(settings, SAMPLES[:4], SAMPLES[4:])
    training.run()
    losses = [look.held_out_loss for look in training.looks]
    assert training.is_done
    assert training.step < 60
    assert min(losses[-3:]) >= min(losses[:-3])


def test_several_references_and_another_degree_are_trained_too():
    training = Training(replace(SETTINGS, references=3, degree=2, steps=2), SAMPLES[:4], SAMPLES[4:])
    before = weights(training)
    training.run()
    assert not torch.equal(before, weights(training))


def test_what_cannot_be_trained_or_taken_up_is_one_line(tmp_path):
    with pytest.raises(TrainingError, match="multiple of 8"):
        Training(replace(SETTINGS, crop=30), SAMPLES, SAMPLES)
    with pytest.raises(TrainingError, match="at most 48"):
        Training(replace(SETTINGS, crop=64), SAMPLES, SAMPLES)
    with pytest.raises(TrainingError, match="no samples"):
        Training(SETTINGS, [], SAMPLES)
    path = tmp_path / "flow.pt"
    Training(replace(SETTINGS, steps=2), SAMPLES, SAMPLES, checkpoint=path).run()
    with pytest.raises(TrainingError, match="other settings"):
        Training(SETTINGS, SAMPLES, SAMPLES, checkpoint=path)
    path.write_bytes(b"nothing")
    with pytest.raises(TrainingError, match="not the state of a training"):
        load_network(path)
    torch.save({"step": 1}, path)
    with pytest.raises(TrainingError, match="lacks"):
        load_network(path)
