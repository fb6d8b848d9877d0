"""The 2048 words that codes and fingerprints are spoken in. Data only; must not know what a word is used for.

Kith's own selection of common English words: 4 to 11 letters, sorted, and no two of them one letter apart (changed,
added or dropped), so that a slip of the ear or the keyboard meets no other word. 11 bits a word. Order is part of the
protocol.
"""

from typing import Final

__all__ = ["WORDS"]

_WORDS_TEXT: Final = """
abbey abroad absorb accent access accuse acorn across action active actor actual adapt adjust admire admit adobe
advice aerial affair affect afford afraid again agency agenda agile agree ahead aisle alarm album algebra alibi alien
alike almanac almond almost alpaca alpine already always amateur amaze amber ambush amount ample amulet amused analog
analyst anatomy anchor ancient anemone angel angle angry animal annual answer antenna anthem antique anvil anxious
apart apology apparel appear applaud apricot april apron arcade archer arctic arena argue arise armor aroma around
arrange arrest arrival arrow artist ascend ashore aside asleep aspect asphalt aspire asset assist assume athlete atlas
atom attach attempt attic attract august aunt aurora author autumn avenue average avocado avoid awake award awesome
awful awkward axis axle baboon bacon badge baffle baggage bagpipe baker balance balcony ballad ballet balloon bamboo
banana bandit banjo banner banquet barber bargain barley barn barrel basalt basil basket bassoon batch bathtub battery
battle bazaar beach beagle bean beanbag bearing beast beaver because become bedrock bedtime beehive beetle before
begin behave behind belief bellow belong benefit berry beside bestow better between beyond bicycle bidder billion
bingo birch biscuit bishop bison blade blanket blend blimp blink block blossom blouse blunder blunt blush board bobcat
body boiler bold bolster bonfire bonus border borrow bottom bounce bouquet bovine bowling boxer bracket braid brake
branch brass breath breeze brick bride brief bright broken bronze broom brother brown bubble bucket buckle budget
buffalo buffer builder bulb bulldog bumper bundle bunker burden burger burlap burning busy butler button buzzard
cabbage cabin cable cactus cadence cafe calcium calico calm camel camera canal canary cancel candid candle candy
cannon canoe canopy canvas capable capital captain caramel caravan carbon cargo caribou carpet carrot cartoon carve
cascade cashew castle casual catalog catfish caught cause caution cavalry cedar ceiling celery cellar cement census
center century ceramic cereal certain chair chalk chamber chance channel chaos chapel chapter chariot charm chase
chateau cheap cheddar cheese cheetah chemist cherry chess chicken chief child chimney chisel choice choose chorus
chowder chronic chuckle chunk church cider cinema circle circus citadel citizen citrus city civil claim classic
clatter claw clean clergy clerk clever client cliff climate clinic clipper cloak clockwork cloth cloud clown club
clump cluster clutch coach coast cobalt cobbler cobra cockpit coconut coffee coin colony color column comb comedy
comet comfort comic command common compass compete comrade concert condor conduct confirm connect conquer console
contact cookie copper copy coral cordial corner correct cosmos costume cottage cotton cougar council country couple
courage cousin cover cowboy coyote crab cradle craft crane crater crawl crayon crazy cream credit creek crew cricket
crimson crisp critic crop crossover crowbar crowd crucial cruise crumble crunch crusade crush crystal cube cuckoo
cuddle culture cupcake curator curious curlew current curry cushion custom cutlass cutlery cyclone cymbal cypress
dagger daily damage dance daring dash dawn daytime dazzle dealer debate debris decade decline deer defeat defend
define defy degree delay delight deliver delta demand denial denim dentist depart deposit depth deputy derive desert
design desk destiny detail detect develop device devote diagram dial diamond diary diesel differ digital dignity
dilemma dinner diploma direct dismiss display divert divide dizzy doctor dolphin domain domino donate donkey doorway
dormant dosage double dough dove dozen dragon drama drawer dress drift drill drink droplet drowsy drum dryer duet
duffel dugout dungeon dustpan dutch dynamic eager early earnest earring earth easel easily eastern easy ebony echo
eclipse ecology economy edge edit educate effort either elapse elastic elbow elder elect elegant element eleven elite
embark emblem embody embrace emerald emerge emotion emperor employ empower empty enable enact enamel enchant endless
endorse endure energy enforce engage engine enhance enjoy enlist enough enrich enroll entire entry epic episode equal
equator equip erase ermine erode erosion errand error erupt escape escort essay essence estate eternal ethics evening
event evolve example excess excite exclude excuse exhaust exhibit exile exist exotic expand expect explain explore
export express extend extra eyebrow eyelash fabric facade factory faculty fade faint fairway faith falafel falcon
fallow false family famous fancy fantasy farmer fashion father fatigue faucet fault federal feeling fence fennel fern
ferret fertile fetch fever fiber fiction fiddle field fierce fifteen figment figure film filter final finch finger
finish firefly fireman fiscal fisher fitness flame flannel flash flavor fleece flight floor floral flower fluid flute
flyer foam focus foggy folder foliage food forbid force forest forget fork fortune forum forward fossil foster found
fragile freckle freedom freeway freezer fresh friday friend fringe frisbee frog frost frozen fruit fudge fuel fumble
funny furnace furrow fury fusion future gadget galaxy gallery gallon game gander garage garden gargle garlic garment
garnet gasp gauge gazelle gecko gelatin general genius genre gentle genuine geology geyser ghost giant gibbon gift
giggle giraffe glacier glad glance glass gleam glide glimpse glitter globe gloom glory glow glucose glue gnome goalie
goat goblin goddess golden gondola goose gopher gorilla gossip govern gown grace grain grammar granite graph gravel
gravity gravy great greedy green grid grizzly grocery groove group growth guard guava guess guitar gumball guppy gusto
gymnast gypsum habit haddock hairpin half halibut hallway hamlet hammer hammock hamster handbag happy harbor harmony
harness harp harvest hatchet haven hawk hazard hazel health heart heather heavy height helium hello helmet helper
hemlock herald herbal hermit hero herring hexagon hiccup hickory hidden highway hiking hilltop hinge hippo history
hobby hockey holiday hollow honest honey honor hoodie hopeful horizon hornet horse hostel hour human humid humor
hundred hunger hurdle husband husky hybrid hyena hymn iceberg icicle icon idea idle igloo iguana image imitate immense
immune impact impala impose improve impulse include income index indigo indoor infant inflict inform inhale inherit
initial inject inkwell input inquiry inside insight inspire install insulin intact into invent invite involve iodine
iris island isolate issue italic item ivory jackal jacket jaguar january jasmine javelin jawbone jazz jealous jeans
jelly jersey jester jewel jigsaw jingle jogger joke journal journey joyful jubilee juggle juice july jumbo june junior
juniper justice karate karma kayak kebab keen keeper kelp kernel kestrel kettle keyhole kidney kimono kingdom kiosk
kitchen kite kitten kiwi knee knife knit knock know koala label labor ladder lady ladybug lagoon lake lamb lancer
lantern laptop large lasagna laser lasso laugh laundry lava lawsuit leader leaf learn lecture ledger leek left legend
leisure lemon lemur length lens lentil leopard lesson lettuce level liberty library license lichen life lilac limber
limit linen lion liquid list little lively lizard llama loan lobster local locket locust lodge logic lonely longbow
looking lookout lorry lottery lotus lounge lucky luggage lullaby lunar lunch lupine luxury lynx lyric macaw machine
madam magenta magic magma magnet magpie maiden mailbox main maize major makeup mammal mammoth manage mandate mango
mansion mantis manual maple marble march margin marine market maroon marvel mascot mashed mask mason massive mastiff
matador math matrix matter mature maximum meadow meal measure media medley meeting melody melon member memory menace
mention menu mercury mercy merit mermaid mesh message meteor method metro midway migrate mileage milk millet mimic
mineral minimum minnow minor minute miracle mirror mishap mistake mixture mobile mocha model modest module mohair
molar molten moment monarch monday monitor monsoon monster month morning morsel mosaic moss mother motor mouse movie
muffin mule muscle museum music muskrat mussel mustang mustard muzzle myself mystery nacho nail napkin narwhal nation
native nearby nebula nectar needle neglect neon nephew nerve nest network neutral newborn newton nickel nimble ninja
noble nobody noise nomad nominee noodle normal notable nothing notice nougat novel nozzle nuclear number nurse nursery
nutmeg nylon oasis oatmeal obey object oblige oboe obscure observe obtain obvious occur ocean ocelot october octopus
odor offer office often oilcan okay olive olympic omelet omit once onion online only onyx opal open opera opinion
opossum oppose optical option oracle orange orbit orchard orchid oregano organ orient origami origin oriole osprey
ostrich otter outback outdoor outfit outline outpost output outside owner oxide oxygen oyster ozone paddle padlock
page painter pajama palace palette pancake panda panel panic pantry papaya paper paprika parade paradox parcel pardon
parent park parsley partner party passage pasta patient patriot patrol pattern payment peace peacock peanut pear
peasant pebble pecan pedal pelican penalty pencil pendant penguin people pepper perfect perhaps period person petunia
phantom phone photo phrase piano piccolo pickle picnic picture piece pigeon pilgrim pillow pilot pinball pink pioneer
piranha pirate piston pitcher pixel pizza placid planet plaster plate play plaza pledge plenty pliers plum plumber
plunge plywood podium poem point pole police polka pollen polygon pond popcorn poplar poppy porch portion potato
powder prairie praise prawn prefer premium prepare present pretty price primary prism private problem process produce
profit program project promote proof prosper proud provide prune public pudding pueblo pulley pulse puma pumpkin pupil
puppet purity purple purpose push pyramid python quaint quality quantum quarry quarter quartz queen quench quick quiet
quill quince quirky quiver quiz quota rabbit raccoon radar radiant radio radish railway rainbow raisin rally ramp
random ranger rapid rare ravine razor ready reason rebel rebuild recall receive recipe record recycle redwood reef
reflect reform refuse region regret regular reject relax release rely remain remind remote render renew rental repair
repeat replace report reptile require rescue reserve resist resolve result retire retreat return reunion reveal review
reward rhubarb rhythm rich ridge rigid ring ripple risk ritual rival river robin robot robust rodent romance rooster
rope rosebud rotate route rowboat royal rubber ruby rudder runner runway rural russet rustic sadness safari safety
saffron saga salad salary salmon salsa salt salute samurai sandal sandbox sapling sardine satchel satin satisfy sauce
sausage savanna save savor sawmill scale scallop scarf scarlet scatter scene scheme school science scoop scooter score
scout scrap screen script scroll scrub seafood seagull search second secret section seed segment senate senior sense
sequoia serene series service session setting seven several sewing shadow shaft shallow shampoo shape shark shawl
sheep shelf shelter sherbet sheriff shield shine shiver shock shoe shopper short shovel shower shrimp shrug shuffle
shuttle siege sierra siesta sight signal silent silica silly silver similar simple since siren sister situate sixteen
sketch skillet skirt skull skunk skyline sleepy sleeve slender slice slim slogan slope slot smart smile smoke smooth
smuggle snack snake snapper sneeze snorkel soap soccer social soda soft soldier solid someone sonata sonnet soon
soothe soprano sorbet source south soybean space spaniel sparrow spatula speak special speech spell sphere spider
spike spinach spiral spirit splash spoil sponge spray spread spring spruce square squash squeeze squid stable stadium
staff stage stamp star station statue steady steam steel stencil step stereo stick still sting stirrup stomach stone
stool stork straw street strike strong student studio stumble style subject sublime submit suburb subway success such
sudden sugar suggest suit sultan summer sunday sundial sunrise sunset super supply support supreme sure surface surfer
survey sustain swan swarm sweater sweet swift switch symbol symptom syrup system tackle taco tactic tadpole tailor
talent talk tanker target tariff tartan tattoo tavern taxi teacher teacup teapot tedious teeth temper temple tenant
tennis tent termite terrace terrier textile texture thank theater theme theory thermos thicket thimble thing thirty
thistle thorn thought thread three thrive throne thumb thunder tide tiger tinfoil tiny title toad today toddler token
tomato tongue tonic toolbox topaz topple tornado total toucan tourist toward towel track trade traffic trail trapeze
tray treetop tremble trench trend trial tribe trident trigger trim trinket triumph trolley trophy trouble trout true
truffle trumpet trunk trust truth tuesday tugboat tulip tuna tundra tunnel turban turbine turkey turnip turtle tuxedo
twelve twenty twice twin twist typical ukulele umpire uncle uncover under unfold unicorn uniform unique unknown unlock
until unusual unveil update upgrade uphold upland uplift upper upright upset urchin urge usage useful usher usual
utensil utility utmost vacant vaccine vacuum vague valiant valid valley valve vanilla vanish vapor various vast vector
vehicle velcro velvet vendor venison venture verb verdict verify verse version vessel veteran viable vibrant victory
video view vigil village vine vintage vinyl viola violin virtual visa visit visual vital vivid voice volcano volume
voter voucher voyage wagon waist waiter walnut walrus waltz warning warrior warthog waste weave wedding weekday
weekend weird welcome western whale wheat wheel whisker white wicker width wildcat window winter wire wisdom wish wolf
woman wombat wonder world worth wrap wrestle wrong xenon yacht yard yoga yogurt young yucca zebra zenith zephyr zigzag
zinc zipper zodiac zoology
"""
WORDS: Final[tuple[str, ...]] = tuple(_WORDS_TEXT.split())
