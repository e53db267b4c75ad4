"""Diagnostics and flags as sentences, for terminals, pages and files."""

import math

from truesim.identification.diagnose.status import Code, Diagnostic

_FIXED = {
    Code.INTERRUPTED: "Stopped before the end: these are the best values so far.",
    Code.NOT_FINITE: "A simulation did not stay finite at the end: try narrower bounds.",
    Code.ITERATION_LIMIT: "The solver reached its limit of iterations before it converged: try a better start, "
    "narrower bounds or more iterations.",
    Code.SEARCH_LIMIT: "The search ended before it converged: give it more time or solves.",
    Code.TRAINING_LIMIT: "Training ended at its limit of iterations: more of them may help.",
    Code.STALLED: "The solver stalled: no step decreased the cost. Try a better start or narrower bounds.",
}

_REGRESSION = {
    "chosen friction": "The values are from the regression of joint torques in a band of {band:g} Hz, with friction "
    "terms chosen for each joint: {error:.1f} % of the torque is left.",
    "chosen friction at some joints": "The values are from the regression of joint torques in a band of {band:g} Hz, "
    "with friction terms and offsets where they predict a joint's torque and motion better: {error:.1f} % of the "
    "torque is left.",
    "basic friction": "The values are from the regression of joint torques in a band of {band:g} Hz, with viscous and "
    "dry friction; additional friction terms predicted worse: {error:.1f} % of the torque is left.",
    "textbook": "The values are from the textbook's regression of joint torques in a band of {band:g} Hz, with viscous "
    "and dry friction and offsets; what was chosen by cross-validation predicted worse: {error:.1f} % of the torque is "
    "left.",
    "robot file": "The robot file predicts torque and motion better than the regression in a band of {band:g} Hz, so "
    "that its values are returned: {error:.1f} % of the torque is left.",
}

_TORQUE_START = {
    "trajectory": "A regression of joint torques started the fit. The trajectory fit is returned: its motion error is "
    "{motion:.2f} times, its torque error {torque:.2f} times that of the regression.",
    "regression": "The values are those of the regression of joint torques that started the fit: its motion error is "
    "{motion:.2f} times, its torque error {torque:.2f} times that of the trajectory fit.",
    "file": "The robot file predicts better than the fit, so that its values are returned: their motion error is "
    "{motion:.2f} times, their torque error {torque:.2f} times that of the regression of joint torques.",
}


_RESIDUALS = {
    Code.STAMP_JITTER: "Samples were taken {ms:.2g} ms (standard deviation) before or after their stamps, which makes "
    "{share:.0f} % of the residual; the intervals count it as noise. Record when each sample was taken.",
    Code.CONTRADICTED: "The residuals contradict {0}, which is fixed{instead} (score {ratio:.0f} times that of "
    "right values). With it free, {1} would change by about {size:.2g} standard deviations; intervals are "
    "widened to such changes. {advice}",
}


def explain(diagnostic: Diagnostic) -> str:
    """A diagnostic as a sentence."""
    if diagnostic.code in _FIXED:
        return _FIXED[diagnostic.code]
    names, value, ratio = diagnostic.subjects, diagnostic.value, diagnostic.ratio
    match diagnostic.code:
        case Code.NOT_IDENTIFIABLE:
            return f"{names[0]} does not show in these logs."
        case Code.ONLY_COMBINATION:
            shown = ", ".join(names[:-1]) + f" and {names[-1]}"
            return f"{shown}: only a combination of them shows in these logs."
        case Code.UNEXPLAINED_MOTION:
            return f"{names[0]}: the residual of {value:.3g} is {100 * ratio:.0f} % of the motion itself."
        case Code.FIXED_PARAMETER:
            share = f"{100 * value:.0f} % of the remaining residual"
            if len(names) > 1:
                return f"Freeing {names[0]} as well would remove {share}."
            return f"Freeing {names[0]} would remove {share}: the free parameters make up for it with wrong values."
        case Code.STAMP_JITTER | Code.CONTRADICTED:
            return _explain_residual(diagnostic)
        case Code.CONTRADICTORY_LOGS:
            return f"The logs contradict each other: each fits alone, but {names[0]} is {names[1]} and {names[2]}."
        case Code.WORSE_THAN_START:
            what = f"{names[0]}: the error, {value:.3g}, is {ratio:.1f} times that of the robot file"
            return f"{what}: the fit ended worse than it began."
        case Code.IMPLAUSIBLE:
            if value == 0:
                return f"{names[0]} is zero, unlike in the robot file: what is fixed may act in its place."
            times = f"{ratio:.3g} times" if ratio > 1 else f"1/{1 / max(ratio, 1e-300):.3g} of"
            return f"{names[0]} is {value:.3g}, {times} the robot file's value."
        case Code.NEAR_FORCE_LIMIT:
            return f"{names[0]} is {value:.3g}, {100 * ratio:.0f} % of the force that the joint's actuator can exert."
        case Code.TIME_STEP:
            what = f"{names[0]} depends on the time step: with {names[1]} ms it would be {value:.3g}"
            return f"{what} instead of zero." if not math.isfinite(ratio) else f"{what} ({100 * (ratio - 1):+.0f} %)."
        case Code.HELD_OUT_WORSE:
            what = f"{names[0]}: the error on held-out logs, {value:.3g}"
            return f"{what}, is {ratio:.1f} times that on the logs of the fit."
        case Code.REGRESSION:
            return _REGRESSION[names[0]].format(band=ratio, error=100 * value)
        case Code.TORQUE_START:
            return _TORQUE_START[names[0]].format(motion=value, torque=ratio)
        case Code.COUPLED_MOTOR:
            return (
                f"The torques of {names[1]} show a motor that turns with both (tendon {names[0]}); the robot file has "
                "none, so it was added, with armature, damping and dry friction."
            )
        case Code.BASE_PARAMETERS:
            return (
                f"Of the {ratio:.0f} numbers of this arm, {value:.0f} combinations (base parameters) show in these "
                "logs; the others stay close to the robot file."
            )
    return (
        f"{names[0]}: residuals of {value:.2g} are {ratio:.0f} times the sensor's noise, so something in the robot is "
        "not in the model."
    )


def _explain_residual(diagnostic: Diagnostic) -> str:
    """Sentence on stamps or fixed parameters that the residuals reveal."""
    names, value, ratio = diagnostic.subjects, diagnostic.value, diagnostic.ratio
    beside = ", or weigh a link: positions alone show forces only relative to masses"
    return _RESIDUALS[diagnostic.code].format(
        *names,
        instead=f"; or {', '.join(names[2:])} instead" if names[2:] else "",
        advice=f"Free it{beside if names and names[0].endswith('.mass') else ''}.",
        ms=1e3 * value,
        size=abs(value),
        ratio=ratio,
        share=100 * ratio,
    )


def explain_group(names: tuple[str, ...]) -> str:
    """A group of parameters that the logs do not determine, as a sentence."""
    return explain(Diagnostic(Code.NOT_IDENTIFIABLE if len(names) == 1 else Code.ONLY_COMBINATION, names))
