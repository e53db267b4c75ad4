"""One chunk of the filter against the textbook's formula, and the statistic of changes against its bound."""

import numpy as np

from tests.identification.two_joint_arm import FREE, stream, xml
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.online.changes import HYPOTHESIS_SPACING, HypothesisBank
from truesim.identification.online.chunks import ChunkBuffer
from truesim.identification.online.filter_state import FilterState, filter_chunk, forget
from truesim.identification.problem.build import build


def small_problem():
    samples = stream(0.5)
    columns = {name: np.array([s[name] for s in samples]) for name in samples[0] if name != "time"}
    return build(loads(xml()), [Log(np.array([s["time"] for s in samples]), columns)], FREE), samples


def test_a_chunk_is_kalmans_update():
    """Near the truth the model is linear: gain, covariance and evidence are those of P J^T (J P J^T + R)^-1."""
    problem, samples = small_problem()
    buffer = ChunkBuffer(problem)
    chunk = next(found for sample in samples if (found := buffer.add(sample)) is not None)
    recording = problem.recordings[0]
    size, nx = problem.parameters.size, 4
    P = np.diag(np.concatenate([np.full(size, 1e-3), np.full(2, 1e-4), np.full(2, 1e-3)]) ** 2)
    before = FilterState(problem.parameters.start[None], recording.q[:1], recording.v[:1], P[None])
    noise = np.full(2, 5e-3)
    learned = filter_chunk(problem, before, chunk, noise)
    segment = chunk.segment._replace(q=recording.q[0], v=recording.v[0])
    simulated, sensitivity = problem.kernel(problem.parameters.start, np.zeros(0), segment)
    J, r = sensitivity.residual.reshape(-1, size + nx), simulated.residual.ravel()
    R = np.diag(np.tile(noise**2, len(r) // 2))
    S = J @ P @ J.T + R
    move = -P @ J.T @ np.linalg.solve(S, r)
    after = P - P @ J.T @ np.linalg.solve(S, J @ P)
    F = np.concatenate([np.eye(size, size + nx), sensitivity.state])
    np.testing.assert_allclose(learned.states.theta[0], problem.parameters.start + move[:size], atol=1e-6)
    np.testing.assert_allclose(learned.states.covariance[0], F @ after @ F.T, rtol=1e-4, atol=1e-12)
    evidence = -0.5 * (r @ np.linalg.solve(S, r) + np.linalg.slogdet(S)[1] - np.linalg.slogdet(R)[1])
    assert abs(learned.evidence[0] - evidence) < 1e-3


def test_forgetting_tends_to_the_prior_and_keeps_what_follows():
    """After all is forgotten the prior is left; the state's covariance given the parameters stays."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5))
    P = A @ A.T / 5
    state = FilterState(np.zeros((1, 3)), np.zeros((1, 1)), np.zeros((1, 1)), P[None])
    prior = np.diag([4.0, 1.0, 0.25])
    left = forget(state, 1.0, prior, np.zeros(2)).covariance[0]
    np.testing.assert_allclose(left[:3, :3], np.linalg.inv(prior), rtol=1e-9)

    def given(C):
        return C[3:, 3:] - C[3:, :3] @ np.linalg.solve(C[:3, :3], C[:3, 3:])

    np.testing.assert_allclose(given(left), given(P), rtol=1e-8)
    np.testing.assert_allclose(forget(state, 0.0, prior, np.zeros(2)).covariance[0], P)


def test_false_alarms_are_as_rare_as_promised():
    """White noise whose mean never changes, and an alarm each 10 s accepted: there are fewer."""
    rng, accepted, jump = np.random.default_rng(1), 10.0, 0.5
    seconds, alarms = 400.0, 0
    bank = HypothesisBank(np.array([jump**2]), accepted)
    bank.restart(FilterState(np.zeros((1, 1)), np.zeros((1, 0)), np.zeros((1, 0)), np.full((1, 1, 1), 1e-9)))
    for k in range(int(seconds / HYPOTHESIS_SPACING)):
        bank.begin(k * HYPOTHESIS_SPACING)
        y, (mean, P) = rng.normal(), (bank.states.theta[:, 0], bank.states.covariance[:, 0, 0])
        S = P + 1
        after = FilterState((mean + P / S * (y - mean))[:, None], *bank.states[1:3], (P / S)[:, None, None])
        bank.update(after, -0.5 * ((y - mean) ** 2 / S + np.log(S)))
        if bank.statistic >= 1:
            alarms += 1
            bank.restart(bank.states.element(0))
    assert alarms <= seconds / accepted
    assert len(bank.hypotheses) <= 7
