"""English forms that no ending tells from other words; each leads to the form it is looked up by."""

from __future__ import annotations

_VERBS = """
arise arose arisen; awake awoke awoken; be was were been; bear bore borne; beat beaten; become became;
begin began begun; bend bent; bet; bind bound; bite bit bitten; bleed bled; blow blew blown; break broke
broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen;
cling clung; come came; creep crept; deal dealt; dig dug; do did done does; draw drew drawn; dream dreamt;
drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought;
find found; flee fled; fly flew flown; forbid forbade forbidden; forget forgot forgotten; forgive forgave
forgiven; freeze froze frozen; get got gotten; give gave given; go went gone goes; grind ground; grow grew
grown; hang hung; have had has; hear heard; hide hid hidden; hold held; keep kept; kneel knelt; know knew
known; lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent; lie lain; light
lit; lose lost; make made; mean meant; meet met; mistake mistook mistaken; overcome overcame; pay paid;
ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell
sold; send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk;
sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; smell smelt; speak spoke spoken; speed
sped; spell spelt; spend spent; spin spun; spoil spoilt; spring sprang sprung; stand stood; steal stole
stolen; stick stuck; sting stung; strike struck; strive strove; swear swore sworn; sweep swept; swell
swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think
thought; throw threw thrown; understand understood; undertake undertook undertaken; wake woke woken; wear
wore worn; weave wove woven; win won; wind wound; withdraw withdrew withdrawn; write wrote written
"""
_NOUNS = """
child children; foot feet; goose geese; half halves; knife knives; leaf leaves; life lives; man men; mouse
mice; person people persons; shelf shelves; thief thieves; tooth teeth; wife wives; wolf wolves; woman
women
"""
BASE = {
    form: forms[0]
    for line in f"{_VERBS};{_NOUNS}".split(";")
    if (forms := line.split())
    for form in forms[1:]
}
