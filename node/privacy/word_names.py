"""Names that are also everyday English words, and the words beside which such a word is a person after all.

A name part in this list is masked only with a second signal (node/privacy/vault.py), or every "will" and "may" in a
prompt would vanish for an owner who knows a Will and a May. Must not know the vault.
"""

__all__ = ["DATE_CUES", "EVERYDAY", "KINDS_OF_PLACE", "MONTHS", "STRONG_CUES", "VERBS_AFTER", "WEAK_CUES"]

def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MONTHS = frozenset(["january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                    "november", "december"])

EVERYDAY = MONTHS | _words("""
abbey ace amber an angel apple art ash autumn baby baker banks bar barber bass bat bay bear bee bell berg berry best
big bill birch bird bishop bitter black blanc blue bob bond book books both bowl box boy brand bread bridge bright
brook brooks brown buck bull burns bush butcher butler can care carol carpenter carter case cash castle cat chance
chapel charity charm chase cherry chip christian church clay clear cliff cloud coal cold cole colt constant cook
cooper copper corn cotton count court crane crisp cross crow crystal curry daisy dale dash date dawn day days dean
deer destiny dick do dollar don dot dove drake drew dry duke dusty eagle earl early earth east english eve even ever
fair faith fall falls farmer fast field fields finch fine fish fisher flint flora flower flowers fly foot ford forest
foster fox frank free freeman french fresh friday friend frost gage gale game garden gardener gates gay gene german
ginger glass glen glory gold golden good goose grace grand grant gray great green grey guard guest gun guy hall ham
hand hardy harmony harp harrow hart hatch haven hawk hay hazel heart heath heather hero hill hills holiday holly home
honey hood hope horn horse house hunt hunter ice in iris iron ivory ivy jack jade jam jasmine jay jean jesus jewel job
joy judge justice kay keen key kind king kings knight lace lad lady lake lamb lance land lane lark last law leaf lee
level light lily lin link lion little lock london long lord lot love low luck lucky ma mace major man mann marble mark
marsh marshal martin mason max maxim me meadow melody mercer mercy merry mild miles mill miller mills mine mint miss
monday money moody moon moore moss mouse my nail navy new newman nice nick night noble noon norm north oak ocean old
olive one opal orange otter page paige palm pan park parker parson part pat patience peace peach pearl penny pepper
piece pierce pike pilgrim pine piper plant pleasant plum poet pole pool poor pope port porter post potter potts pound
power powers price pride priest prince princess prior proud prudence queen quick quiet rain ram randy range ranger
raven ray reading red reed reeves rich riches rider ring rio rip rise river rivers rob robin rock rod roman rook root
rose rosemary rough royal ruby rush rust rusty sad saddle sage salmon salt sand sandy savage saw sea sex shade sharp
sheep sheppard shield shine ship short silk silver singer sky slater sly small smart smith snow so solomon son song
south spring sprung star steel steer sterling stone storm story street strong sue summer summers sun sunday sunny swan
sweet swift tailor tan taylor temple the thorn tiger tile timber tom torch tower town tree trench trinity true turner
van vance venus vine viola violet virgin virtue von wade waiter walker wall walls war ward warm water waters way
weaver web weeks welcome well wells west wheeler white wild wilder will wills wind winter wise wish wolf wood woods
wool worth wren wright yes yew york young
""")

# A word before the name that makes it a person whatever its case.
STRONG_CUES = _words("""
ask aunt auntie cousin dear dr email grandma grandpa hello hey hi invite mail miss mr mrs ms mx phone prof professor
remind sir tell text uncle
""")

# A word before a capitalised name that makes it a person.
WEAK_CUES = _words("""
about and boss brother by call called colleague contact dad daughter father for friend from husband is meet met mom
mother mum named neighbor neighbour partner s saw see sister son thank thanks that to wife with
""")

# A word after a capitalised name that makes it a person.
VERBS_AFTER = _words("""
and asked asks called calls came can comes had has is knows likes lives needed needs s said says sent tells thinks
told wanted wants was will works writes wrote
""")

# A word before a month.
DATE_CUES = _words("in since until by early late mid next last this every from to of")

# Words of addresses and events that name nobody by themselves.
KINDS_OF_PLACE = _words("""
a al an and apartment apt at ave avenue bank block blvd boulevard box building call calle cesta clinic co company corp
court ct da de del den der di dinner dr drive el flat floor for from gmbh group hospital house in inc la lane le llc
ln ltd lunch meeting of office on pl place platz rd road rue school sq square st str strasse street suite the to ulica
unit university van via von way weg with
""")
