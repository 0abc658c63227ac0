"""Whether something fits under a limit, said in the same words everywhere."""

from app.estimator.estimate import Status, Verdict
from app.estimator.units import format_value

TIGHT = 0.1


def status_of(need: float, limit: float) -> Status:
    """`no` above the limit, `tight` with less than 10 % free, else `fits`.

    >>> status_of(149.4e9, 80e9), status_of(75e9, 80e9), status_of(40e9, 80e9)
    ('no', 'tight', 'fits')
    """
    if need > limit:
        return "no"
    return "tight" if limit - need < TIGHT * limit else "fits"


_LEADS: dict[Status, str] = {
    "no": "Does not fit.",
    "tight": "Tight.",
    "fits": "Fits.",
    "info": "",
}


def memory_verdict(need: float, limit: float, whole: float, gpus: int) -> Verdict:
    r"""Say whether a GPU that needs `need` bytes has room in `limit` of `whole`.

    >>> memory_verdict(149.4e9, 80e9, 80e9, 8).text.replace("\u00a0", " ")
    'Each GPU would need 149.4 GB and has 80 GB.'
    """
    status = status_of(need, limit)
    subject = "Each GPU" if gpus > 1 else "The GPU"
    has = f"has {format_value(whole, 'B')}"
    if limit < whole:
        has = f"may use {format_value(limit, 'B')} of {format_value(whole, 'B')}"
    if status == "no":
        text = f"{subject} would need {format_value(need, 'B')} and {has}."
    else:
        free = format_value(limit - need, "B")
        text = f"{subject} needs {format_value(need, 'B')} and {has}: {free} free."
    return Verdict(status, _LEADS[status], text)
