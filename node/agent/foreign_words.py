"""What the agent understands in German, French, Spanish and Italian: cue words of four kinds of request, and times.

Data only: patterns over folded text (small letters), and the English words that stand for them. Must not know requests.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["TONGUES", "Tongue"]


@dataclass(frozen=True, slots=True)
class Tongue:
    """One language. times: (pattern, English), tried in this order. lead: what stands before a reminder's words.

    own: words for what only the agent can do, so that a request with one of them is no model's to answer.
    """

    name: str
    list_days: re.Pattern[str]
    free: re.Pattern[str]
    remind: re.Pattern[str]
    note: re.Pattern[str]
    filler: frozenset[str]
    lead: re.Pattern[str]
    times: Sequence[tuple[re.Pattern[str], str]]
    own: re.Pattern[str]
    apology: str


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")
_CLOCK = r"(\d{1,2})(?:[:.](\d\d))?"


def _times(
    pairs: Mapping[str, str], *, days: str, before_day: str, next_day: str, months: str, date: str, at: str,
    units: Mapping[str, str], within: str, one: str, numbers: str,
) -> list[tuple[re.Pattern[str], str]]:
    """The patterns of one language; `date` and `next_day` hold {} for the name. numbers: the words for two to ten."""
    found: list[tuple[str, str]] = []
    found += [(date.format(month), rf"on \1 {english}") for month, english in zip(months.split(), _MONTHS, strict=True)]
    for day, english in zip(days.split(), _DAYS, strict=True):
        found.append((next_day.format(day), f"next {english}"))
        found.append((rf"(?:(?:{before_day})\s+)?{day}", f"on {english}"))
    for unit, english in units.items():
        found.append((rf"(?:{within})\s+(\d+)\s+{unit}", rf"in \1 {english}"))
        found.append((rf"(?:{within})\s+(?:{one})\s+{unit}", f"in 1 {english.rstrip('s')}"))
        found += [
            (rf"(?:{within})\s+{word}\s+{unit}", f"in {number} {english}")
            for number, word in enumerate(numbers.split(), 2)
        ]
    found += sorted(pairs.items(), key=lambda pair: -len(pair[0]))
    found.append((at, r"at \1:\2"))
    return [(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)"), english) for pattern, english in found]


GERMAN = Tongue(
    "German",
    re.compile(r"^(?:was (?:habe ich|steht|ist)|(?:zeige?|nenne?)(?: mir)?(?: bitte)?(?: meine)? termine|"
               r"welche termine|habe ich .*termine?)\b"),
    re.compile(r"^(?:wann )?(?:bin|habe) ich\b.*\b(?:frei|zeit)\b"),
    re.compile(r"^(?:bitte )?erinnere? mich\b(?: bitte)?,?"),
    re.compile(r"^(?:bitte )?(?:notier\w*(?: mir| dir)?|notiz|schreibe? (?:mir )?(?:auf|eine notiz))\b(?: bitte)?"
               r"[:,]?\s*(?:dass )?"),
    _words(
        "was habe ich steht ist vor an im in meinem kalender bitte zeig zeige nenn nenne mir meine termine termin "
        "welche wann bin frei zeit noch so los es da für alles einen"),
    re.compile(r"^(?:daran,?\s*|dass\s+|an\s+)"),
    _times(
        {"übermorgen": "the day after tomorrow", "morgen früh": "tomorrow morning", "heute abend": "this evening",
         "heute nachmittag": "this afternoon", "morgen nachmittag": "tomorrow afternoon",
         "morgen abend": "tomorrow evening", "heute": "today", "morgen": "tomorrow", "diese woche": "this week",
         "(?:der )?nächsten? woche": "next week", "(?:am|dieses) wochenende": "this weekend",
         "am nachmittag": "in the afternoon",
         "am vormittag": "in the morning", "am abend": "in the evening", "um mittag|mittags": "at noon"},
        days="montag dienstag mittwoch donnerstag freitag samstag sonntag", before_day="am",
        next_day="(?:am )?nächsten {}",
        months="januar februar märz april mai juni juli august september oktober november dezember",
        date=r"(?:am )?(\d{{1,2}})\.?\s+{}", at=rf"um {_CLOCK}(?: uhr)?", within="in", one="einer|einem",
        numbers="zwei drei vier fünf sechs sieben acht neun zehn",
        units={"stunden?": "hours", "minuten?": "minutes", "tag(?:en)?": "days", "wochen?": "weeks"}),
    re.compile(r"\b(?:termine?|kalender|notiz\w*|erinner\w*|nachricht\w*|kontakt\w*|telefonnummer|buche|verschieb\w*)\b"),
    "Auf Deutsch kann ich das nicht. Was geht: Termine oder freie Zeit an einem Tag zeigen, an etwas erinnern, etwas "
    "notieren. Alles andere geht auf Englisch.",
)
FRENCH = Tongue(
    "French",
    re.compile(r"^(?:qu['’]est-ce que j['’]ai|qu['’]ai-je|montre(?:-moi)? (?:mes|mon) (?:rendez-vous|agenda)|"
               r"quels (?:sont mes )?rendez-vous)"),
    re.compile(r"^(?:quand )?(?:suis-je|est-ce que je suis|je suis) (?:libre|disponible)"),
    re.compile(r"^(?:s['’]il te plaît,? )?rappelle[- ]moi\b,?"),
    re.compile(r"^(?:(?:note|prends note|écris une note) que|prends (?:en )?note|écris une note|note :)\s*[:,]?\s*"),
    _words(
        "qu'est-ce que j'ai qu'ai-je de prévu montre montre-moi mes mon rendez-vous agenda quels sont ai-je quand "
        "suis-je est-ce je suis libre disponible au programme dans"),
    re.compile(r"^(?:de\s+|d['’]|que\s+|:\s*)"),
    _times(
        {"après-demain": "the day after tomorrow", "demain matin": "tomorrow morning", "ce soir": "this evening",
         "demain après-midi": "tomorrow afternoon", "cet après-midi": "this afternoon",
         "demain soir": "tomorrow evening",
         "aujourd['’]hui": "today", "demain": "tomorrow", "cette semaine": "this week",
         "(?:de )?la semaine prochaine": "next week", "ce week-end": "this weekend", "à midi": "at noon"},
        days="lundi mardi mercredi jeudi vendredi samedi dimanche", before_day="le|ce", next_day="{} prochain",
        months="janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        date=r"(?:le )?(\d{{1,2}})(?:er)?\s+{}", at=r"à (\d{1,2})(?:\s?(?:h|heures?)\s?(\d\d)?|:(\d\d))", within="dans",
        one="un|une",
        numbers="deux trois quatre cinq six sept huit neuf dix",
        units={"heures?": "hours", "minutes?": "minutes", "jours?": "days", "semaines?": "weeks"}),
    re.compile(r"\b(?:rendez-vous|agenda|rappel\w*|notes?|message|contact\w*|numéro|réserve|annule)\b"),
    "En français, je ne sais pas faire cela. Ce qui marche : montrer les rendez-vous ou le temps libre d'un jour, "
    "rappeler quelque chose, prendre une note. Le reste marche en anglais.",
)
SPANISH = Tongue(
    "Spanish",
    re.compile(r"^¿?(?:qué tengo|muéstrame (?:mis citas|mi agenda|mi calendario)|qué citas tengo|"
               r"qué hay en mi (?:agenda|calendario))\b"),
    re.compile(r"^¿?(?:cuándo )?(?:estoy libre|tengo (?:tiempo libre|un hueco))\b"),
    re.compile(r"^(?:por favor,? )?recuérdame\b,?"),
    re.compile(r"^(?:anota|apunta|toma nota|escribe una nota)\b\s*[:,]?\s*(?:de que |que )?"),
    _words(
        "qué tengo muéstrame mis citas mi agenda calendario hay en cuándo estoy libre tiempo un hueco para "
        "el"),
    re.compile(r"^(?:que\s+|de\s+|:\s*)"),
    _times(
        {"pasado mañana": "the day after tomorrow", "mañana por la mañana": "tomorrow morning",
         "mañana por la tarde": "tomorrow afternoon", "esta tarde": "this afternoon", "esta noche": "this evening",
         "hoy": "today", "mañana": "tomorrow", "esta semana": "this week",
         "(?:de )?la (?:próxima semana|semana que viene)": "next week", "este fin de semana": "this weekend",
         "al mediodía": "at noon"},
        days="lunes martes miércoles jueves viernes sábado domingo", before_day="el|este",
        next_day="(?:el )?(?:próximo {0}|{0} que viene)",
        months="enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        date=r"(?:el )?(\d{{1,2}})\s+de\s+{}", at=rf"a las? {_CLOCK}", within="en|dentro de", one="un|una",
        numbers="dos tres cuatro cinco seis siete ocho nueve diez",
        units={"horas?": "hours", "minutos?": "minutes", "días?": "days", "semanas?": "weeks"}),
    re.compile(r"\b(?:citas?|agenda|calendario|nota|anota|apunta|recordatorio\w*|recu[eé]rd\w*|recordar\w*|mensaje|contacto\w*|reserva|cancela)\b"),
    "En español no sé hacer eso. Lo que funciona: mostrar las citas o el tiempo libre de un día, recordar algo, tomar "
    "una nota. Lo demás funciona en inglés.",
)
ITALIAN = Tongue(
    "Italian",
    re.compile(r"^(?:(?:che )?cosa ho|che (?:impegni|appuntamenti) ho|"
               r"mostrami (?:i miei |gli )?(?:impegni|appuntamenti)|"
               r"quali (?:impegni|appuntamenti) ho)\b"),
    re.compile(r"^(?:quando )?sono liber[oa]\b"),
    re.compile(r"^(?:per favore,? )?ricordami\b,?"),
    re.compile(r"^(?:annota|prendi nota|scrivi una nota|appunta)\b\s*[:,]?\s*(?:che\s+)?"),
    _words(
        "cosa ho che impegni appuntamenti mostrami i miei gli quali quando sono libero libera in programma "
        "agenda"),
    re.compile(r"^(?:di\s+|che\s+|:\s*)"),
    _times(
        {"dopodomani": "the day after tomorrow", "domani mattina": "tomorrow morning", "stasera": "this evening",
         "domani pomeriggio": "tomorrow afternoon", "questo pomeriggio": "this afternoon",
         "domani sera": "tomorrow evening", "oggi": "today", "domani": "tomorrow", "questa settimana": "this week",
         "(?:de)?l?la (?:prossima settimana|settimana prossima)": "next week",
         "questo (?:fine settimana|weekend)": "this weekend",
         "a mezzogiorno": "at noon"},
        days="lunedì martedì mercoledì giovedì venerdì sabato domenica", before_day="di|questo",
        next_day="{} prossim[oa]",
        months="gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        date=r"(?:il |l['’])?(\d{{1,2}})\s+{}", at=rf"all[ea]?\s?(?:['’])?{_CLOCK}", within="tra|fra",
        one="un|una|un['’]", numbers="due tre quattro cinque sei sette otto nove dieci",
        units={"or[ae]": "hours", "minut[oi]": "minutes", "giorn[oi]": "days", "settiman[ae]": "weeks"}),
    re.compile(r"\b(?:impegni|appuntament\w*|agenda|calendario|promemoria|ricord\w*|nota|annota|messaggio|contatt\w*|prenota|annulla)\b"),
    "In italiano non so farlo. Quello che funziona: mostrare gli appuntamenti o il tempo libero di un giorno, "
    "ricordare qualcosa, prendere una nota. Il resto funziona in inglese.",
)
TONGUES = (GERMAN, FRENCH, SPANISH, ITALIAN)
