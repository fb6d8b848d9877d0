"""The tool that tells the time, here or elsewhere. Must not know calendars."""

import unicodedata
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from node.agent.tools.errors import NothingFound
from node.agent.tools.examples import examples_of
from node.agent.tools.registry import Args, Param, ToolAnswer, ToolContext, ToolSpec, check_args
from node.agent.tools.wording import moment
from node.privacy.labels import Confidentiality, Integrity, Labeled

__all__ = ["ClockNow"]

_SPEC = ToolSpec(
    name="clock_now",
    description="Tell the current time and date, here or in another city or time zone",
    params={"place": Param("the city or country, if not here", "place")},
    required=(),
    examples=(
        "what time is it right now", "tell me the time please", "what's today's date", "which day of the week is it",
        "how late is it in Sydney", "what is the clock showing in Toronto", "current local time in Oslo",
        "is it already evening in Mumbai, what time do they have", "what date do we have today",
        *examples_of("clock_now"),
    ),
    kind="read",
    cues=("time", "clock", "date today", "what day", "how late"),
)

_PLACES = {
    # Countries and cities whose zone is named after another city.
    "england": "Europe/London", "uk": "Europe/London", "britain": "Europe/London", "great britain": "Europe/London",
    "scotland": "Europe/London", "wales": "Europe/London", "manchester": "Europe/London", "edinburgh": "Europe/London",
    "germany": "Europe/Berlin", "munich": "Europe/Berlin", "hamburg": "Europe/Berlin", "cologne": "Europe/Berlin",
    "frankfurt": "Europe/Berlin", "france": "Europe/Paris", "lyon": "Europe/Paris", "spain": "Europe/Madrid",
    "barcelona": "Europe/Madrid", "italy": "Europe/Rome", "milan": "Europe/Rome", "netherlands": "Europe/Amsterdam",
    "belgium": "Europe/Brussels", "switzerland": "Europe/Zurich", "geneva": "Europe/Zurich", "austria": "Europe/Vienna",
    "poland": "Europe/Warsaw", "sweden": "Europe/Stockholm", "norway": "Europe/Oslo", "denmark": "Europe/Copenhagen",
    "finland": "Europe/Helsinki", "ireland": "Europe/Dublin", "greece": "Europe/Athens", "turkey": "Europe/Istanbul",
    "ukraine": "Europe/Kyiv", "kiev": "Europe/Kyiv", "czech republic": "Europe/Prague", "hungary": "Europe/Budapest",
    "romania": "Europe/Bucharest", "croatia": "Europe/Zagreb", "india": "Asia/Kolkata", "mumbai": "Asia/Kolkata",
    "delhi": "Asia/Kolkata", "new delhi": "Asia/Kolkata", "bangalore": "Asia/Kolkata", "chennai": "Asia/Kolkata",
    "china": "Asia/Shanghai", "beijing": "Asia/Shanghai", "japan": "Asia/Tokyo", "osaka": "Asia/Tokyo",
    "korea": "Asia/Seoul", "south korea": "Asia/Seoul", "thailand": "Asia/Bangkok", "vietnam": "Asia/Ho_Chi_Minh",
    "pakistan": "Asia/Karachi", "israel": "Asia/Jerusalem", "tel aviv": "Asia/Jerusalem", "uae": "Asia/Dubai",
    "egypt": "Africa/Cairo", "kenya": "Africa/Nairobi", "nigeria": "Africa/Lagos",
    "south africa": "Africa/Johannesburg",
    "cape town": "Africa/Johannesburg", "morocco": "Africa/Casablanca", "new zealand": "Pacific/Auckland",
    "hawaii": "Pacific/Honolulu", "argentina": "America/Argentina/Buenos_Aires", "colombia": "America/Bogota",
    "peru": "America/Lima", "chile": "America/Santiago", "boston": "America/New_York", "washington": "America/New_York",
    "miami": "America/New_York", "atlanta": "America/New_York", "nyc": "America/New_York", "dallas": "America/Chicago",
    "houston": "America/Chicago", "texas": "America/Chicago", "california": "America/Los_Angeles",
    "san francisco": "America/Los_Angeles", "seattle": "America/Los_Angeles", "la": "America/Los_Angeles",
    "las vegas": "America/Los_Angeles", "montreal": "America/Toronto", "ottawa": "America/Toronto",
}
_WIDE = frozenset({
    "usa", "us", "america", "united states", "canada", "brazil", "australia", "russia", "mexico", "indonesia",
    "kazakhstan",
})
"""Countries with more than one time."""


class ClockNow:
    """Now, in words. Nothing personal in it."""

    spec = _SPEC

    async def choices(self, param: str) -> tuple[str, ...]:
        """Any place may be named."""
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The date and time. Raises NothingFound for a place that is not known or has several times."""
        check_args(self.spec, args)
        place = str(args.get("place", "")).strip()
        zone = zone_of(place) if place else ctx.zone
        now = ctx.clock.now()
        where = f" in {place}" if place else ""
        text = f"It is {moment(now, zone)}{where}."
        data = {"now": now.isoformat(timespec="seconds"), "zone": zone.key}
        return ToolAnswer(Labeled(text, Confidentiality.PUBLIC, Integrity.LOCAL, "clock_now"), data)


def zone_of(place: str) -> ZoneInfo:
    """The zone of a city, country or IANA name. Raises NothingFound."""
    wanted = _fold(place.removeprefix("the "))
    if wanted in _WIDE:
        raise NothingFound(f"{place} has more than one time. Name a city.")
    name = _PLACES.get(wanted) or _cities().get(wanted)
    if name is None:
        raise NothingFound(f"The time zone of {place} is not known here. Name a larger city nearby.")
    return ZoneInfo(name)


@cache
def _cities() -> dict[str, str]:
    """Every IANA zone by its full name and by its city, folded."""
    found: dict[str, str] = {}
    for name in sorted(available_timezones()):
        area, _, city = name.rpartition("/")
        found[_fold(name)] = name
        if area and area.split("/")[0] not in {"Etc", "SystemV", "US", "posix", "right"}:
            found.setdefault(_fold(city), name)
    return found


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(part for part in plain if not unicodedata.combining(part)).replace("_", " ").strip(" .")
