"""Whether ours agrees with what was stated, at the precision with which it was stated."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.publications.reference import Reference
from analysis.publications.stated import Stated
from analysis.rebuilt.rebuilt import Check
from analysis.words import MISSING, number

LISTED = 6
NOT_MEASURED = "These results hold no proven load for it."


def check_value(
    stated: Stated,
    what: str,
    ours: Sequence[float],
    why: str = "",
    missing: str = NOT_MEASURED,
    where: str = "",
) -> Check:
    """Set ``ours`` (one value, or several whose range counts) beside ``stated``.

    They agree when all of ours, rounded as the publication rounds, are the stated value or inside
    the stated range.  ``why`` is said when they differ, ``missing`` when there is none of ours.
    """
    place = where or stated.place
    if not ours:
        return Check(place, what, in_words(stated), MISSING, "not measured", missing)
    decimals = places_of(stated)
    text = span(ours, decimals + 1, stated.unit)
    if all(agrees(stated, one) for one in ours):
        inside = stated.value is not None or all(_holds(stated, one, 0.0) for one in ours)
        said = text if inside else f"{text} (rounded as it was stated)"
        return Check(place, what, in_words(stated), said, "agrees")
    return Check(place, what, in_words(stated), text, "differs", why)


def check_rows(
    where: str, what: str, held: Sequence[str], broken: Sequence[str], why: str = ""
) -> Check:
    """Count in how many rows a sentence of the publication holds; the exceptions are named."""
    total = len(held) + len(broken)
    if not total:
        return Check(where, what, "yes", MISSING, "not measured", NOT_MEASURED)
    ours = f"in {len(held)} of {total}"
    if not broken:
        return Check(where, what, "yes", ours, "agrees")
    named = "; ".join(broken[:LISTED])
    more = f"; and {len(broken) - LISTED} more" if len(broken) > LISTED else ""
    return Check(where, what, "yes", f"{ours}; not in {named}{more}", "differs", why)


def check_sentence(
    reference: Reference | None, word: str, held: Sequence[str], broken: Sequence[str], why: str
) -> list[Check]:
    """``check_rows`` of the sentence that holds ``word``; nothing where it is not published."""
    for one in reference.sentences if reference else ():
        if word in one.says:
            return [check_rows(one.place, one.says.rstrip("."), held, broken, why)]
    return []


def see(reference: Reference | None, word: str) -> str:
    """Point at the difference beside the reference whose heading holds ``word``, if one does."""
    for difference in reference.differences if reference else ():
        if word.lower() in difference.what.lower():
            return f"See \u201c{difference.what}\u201d."
    return ""


def because(*sentences: str) -> str:
    """Join the sentences that are there."""
    return " ".join(one for one in sentences if one)


def agrees(stated: Stated, ours: float) -> bool:
    """Whether ``ours``, rounded as the publication rounds, is the value or inside the range."""
    return _holds(stated, ours, 0.5 * 10.0 ** -places_of(stated))


def in_words(stated: Stated) -> str:
    """What is stated: ``1.3 s``, ``8 to 28 %``, ``at most 25 %``."""
    if stated.value is not None:
        return f"{stated.value:g} {stated.unit}"
    if stated.low is None:
        return f"at most {stated.high:g} {stated.unit}"
    if stated.high is None:
        return f"at least {stated.low:g} {stated.unit}"
    return f"{stated.low:g} to {stated.high:g} {stated.unit}"


def span(values: Sequence[float], decimals: int, unit: str) -> str:
    """``values`` as one number or as a range, with the unit."""
    ends = dict.fromkeys(number(end, decimals) for end in (min(values), max(values)))
    return f"{' to '.join(ends)} {unit}".strip()


def places_of(stated: Stated) -> int:
    """With how many decimals it was printed."""
    printed = (one for one in (stated.value, stated.low, stated.high) if one is not None)
    return max(len(f"{one:.6f}".rstrip("0").partition(".")[2]) for one in printed)


def _holds(stated: Stated, ours: float, slack: float) -> bool:
    low = stated.low if stated.value is None else stated.value
    high = stated.high if stated.value is None else stated.value
    return (low is None or ours >= low - slack) and (high is None or ours <= high + slack)
