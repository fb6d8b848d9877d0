"""Whether a text is English, sentence by sentence: the detectors read English only.

Function words of nine languages and the scripts of letters decide; a language that is none of them is told by what it
lacks. Too little text to tell counts as English: names and numbers alone are what the detectors know best. No list is
downloaded. Must not know nets or what follows.
"""

import re
import unicodedata

__all__ = ["foreign_language", "is_function_word", "is_mostly_foreign"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = _words("""
the and of to is are was were be been it this that these those with for from you your yours my mine we our they their
his her him she he have has had do does did not but can could will would should what when where which who how why there
here then than them an by at or if about into over after before please i i'm it's don't let me make need want write
give tell show find list help get know any some all more most very just also only
""")
# what reads as a word of another language in an English sentence ("die", "war", "come") is left out
_OTHERS = {
    "German": _words("""
    der das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind wird wurde werden
    haben hatte ich du er wir ihr mein meine meiner meinem dein deine sein seine unser für mit von zu zum zur bei nach
    auf aus über unter wie wo wann warum wer bitte auch noch schon nur mir mich dich uns euch ihn ihm wenn dass weil
    kann kannst könnte muss soll sehr diese dieser dieses heute morgen gestern schreib schreibe einfach
    """),
    "French": _words("""
    le la les des une du de et est sont était être avoir je tu il elle nous vous ils elles mon ma mes ton ta tes sa ses
    notre votre leur dans avec pas plus que qui quoi où quand comment pourquoi ce cette ces sur par mais ou donc aussi
    très bien fait faire peux peut écris écrire merci demain hier aujourd'hui au aux j'ai c'est n'est d'une d'un qu'il
    s'il chez
    """),
    "Spanish": _words("""
    el los las una unos unas y es son era está están ser estar tengo tiene yo tú él ella nosotros ustedes ellos mi mis
    tu tus su sus nuestro nuestra del al con por para sin sobre pero porque que qué quién cuándo dónde cómo muy más
    también este esta estos estas ese esa le lo puedes puede escribe escribir gracias mañana ayer hoy hola en un y se
    les nos como hay siempre algo alguien nada todo todos cada hacer hace otro otra de la las
    """),
    "Italian": _words("""
    il lo gli uno una è sono era essere avere ho hai ha abbiamo io lui lei noi voi loro mio mia miei tuo tua suo sua
    nostro della delle del dei degli nel nella con per tra fra che chi cosa quando dove perché questo questa questi
    molto più anche non puoi può scrivi scrivere grazie domani ieri oggi ciao di da alla allo agli un e mi ti si ci
    devo deve sempre ma se come ogni tutto tutti qualcosa niente altro altra fare fa suoi
    """),
    "Portuguese": _words("""
    os um uma uns e é são está estão ser ter tenho tem eu você ele ela nós vocês eles meu minha seu sua nosso do da dos
    das no na nos nas com por para sem sobre mas porque que quem quando onde como muito mais também este esta isso não
    pode escreva escrever obrigado obrigada amanhã ontem hoje olá um em se lhe nos sempre algo tudo todos cada fazer
    faz outro outra
    """),
    "Dutch": _words("""
    de het een en van ik jij je hij zij wij jullie mijn jouw zijn haar ons onze niet geen maar met voor naar bij uit
    over wat wie waar wanneer waarom hoe dit dat deze die ook nog al heel kan kunt moet wil schrijf alsjeblieft bedankt
    morgen gisteren vandaag heeft hebben wordt
    """),
    "Polish": _words("""
    i w na z do nie się jest są był była to ten ta te jak kiedy gdzie dlaczego kto co mój moja twój jego jej nasz dla
    od po przez ale że czy bardzo też już proszę dziękuję jutro wczoraj dzisiaj mam masz ma
    """),
    "Slovenian, Croatian or Czech": _words("""
    in je so bi bil bila se si na za od do po pri ne ni kaj kje kdaj zakaj kako moj moja tvoj njegov njen naš ali ampak
    ker da zelo tudi že prosim hvala jutri včeraj danes imam imaš ima iz sa što gdje kada molim sutra jsem jsi jsou byl
    byla není co kde kdy proč jak můj tvůj ale také prosím děkuji zítra včera dnes mám máš má ve ze
    """),
}
_SENTENCE = re.compile(r"[^.!?\n:;]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LEAST_WORDS = 3        # of a sentence that is judged by words of another language
_LEAST_PROSE = 8        # lower-case words without a single English function word: some language, but not English
_LEAST_LETTERS = 3      # of another script


def foreign_language(text: str) -> str | None:
    """The first language other than English that a sentence of the text is in, None for English or too little text.

    "another script" for letters that are not Latin, "another language" for one that is not in the lists.
    """
    foreign_script = _other_script(text)
    if foreign_script:
        return "another script"
    for match in _SENTENCE.finditer(text):
        found = _judge(_WORD.findall(match[0]))
        if found is not None:
            return found
    return None


def is_function_word(word: str) -> bool:
    """Whether it is one of the English words that name nothing, whatever its case."""
    return word.lower() in _ENGLISH


def is_mostly_foreign(text: str) -> bool:
    """Whether more of the text is in another language than not."""
    foreign = 0
    for match in _SENTENCE.finditer(text):
        if _other_script(match[0]) or _judge(_WORD.findall(match[0])) is not None:
            foreign += len(match[0])
    return foreign * 2 > len(text)


def _judge(written: list[str]) -> str | None:
    if len(written) < _LEAST_WORDS:
        return None
    words = [word.lower().replace("’", "'") for word in written]
    english = sum(word in _ENGLISH for word in words)
    best, name = max((sum(word in known for word in words), name) for name, known in _OTHERS.items())
    if best >= 2 and best > english:
        return name
    if best and not english and best * 4 >= len(words) and len(words) >= 4:
        return name
    prose = sum(word[0].islower() for word in written)
    if prose >= _LEAST_PROSE and english * 12 < prose:
        return "another language"
    return None


def _other_script(text: str) -> bool:
    if text.isascii():
        return False
    foreign = 0
    for char in text:
        if char > "\u024f" and char.isalpha() and not unicodedata.name(char, "LATIN").startswith(("LATIN", "MODIFIER")):
            foreign += 1
            if foreign >= _LEAST_LETTERS:
                return True
    return False
