"""Every size, count and time of the wire in one place: first what the specification fixes, then what this
implementation chose.

A change in the first block changes the protocol: bump the version in names.py and renew the golden bytes. A change in
the second block is local. Must not know any frame, machine or reader of these numbers.
"""

from typing import Final

# ---- specification: both ends must agree -----------------------------------------------------------------------------

# framing (docs/reference/protocols.md): 4 bytes big-endian length, then one canonical msgpack value
FRAME_HEADER_BYTES: Final = 4
LINK_FRAME_BYTES: Final = 32 * 1024
PAIR_FRAME_BYTES: Final = 8 * 1024
INFER_FRAME_BYTES: Final = 512 * 1024
QUERY_FRAME_BYTES: Final = 256 * 1024
MAIL_FRAME_BYTES: Final = 160 * 1024
MODEL_FRAME_BYTES: Final = 72 * 1024
RECEIPT_FRAME_BYTES: Final = 4 * 1024
MAX_FRAME_BYTES: Final = INFER_FRAME_BYTES  # the largest of them

# canonical msgpack
MAX_DEPTH: Final = 16
MAX_STR_BYTES: Final = 256 * 1024
MAX_BIN_BYTES: Final = 64 * 1024
MAX_ARRAY_ITEMS: Final = 32 * 1024
MAX_MAP_ITEMS: Final = 64
MAX_VALUES: Final = 128 * 1024  # all values of one frame, containers included

# identifiers
ID_BYTES: Final = 16
NONCE_BYTES: Final = 32
SECRET_BYTES: Final = 16
MAC_BYTES: Final = 32
PUBLIC_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
TEXT_DIGEST_BYTES: Final = 16
SPAKE2_SHARE_BYTES: Final = 33  # side byte + compressed group element
PEER_ID_CHARS: Final = 52
MAX_NODE_NAME_CHARS: Final = 32
MAX_MODEL_NAME_CHARS: Final = 96
MODEL_DIGEST_CHARS: Final = 64
MAX_ADDRESS_CHARS: Final = 160
MAX_UINT32: Final = 2**32 - 1
MAX_SEQ: Final = 2**53 - 1  # exact in every language's numbers

# link
MAX_PROTOCOL_IDS: Final = 32
MAX_CAPABILITIES: Final = 16
MAX_MODEL_ADVERTS: Final = 64
MAX_WHEREABOUTS_BYTES: Final = 4096
MAX_CONTEXT_TOKENS: Final = 4 * 1024 * 1024

# pairing
MAX_CARD_ADDRESSES: Final = 16
MAX_GRANT_BYTES: Final = 4096
PAIRING_TRIES: Final = 3
CODE_WORDS: Final = 2
WORDLIST_SIZE: Final = 2048
EMOJI_CHECK_COUNT: Final = 3
EMOJI_TABLE_SIZE: Final = 64
MAX_CODE_NUMBER: Final = 99

# inference
MAX_PROMPT_PARTS: Final = 512
MAX_PROMPT_CHARS: Final = 200_000  # of one part; the frame limit bounds the sum
MAX_PROMPT_TOKEN_IDS: Final = 32 * 1024
MAX_TEXT_BYTES: Final = 128 * 1024  # UTF-8 of one answer, from its first word on, so that it can always be resumed
MAX_TOKEN_TEXT_CHARS: Final = 16 * 1024
MAX_TOKENS_PER_FRAME: Final = 1024
MAX_OUTPUT_TOKENS: Final = 32 * 1024
MAX_STOP_STRINGS: Final = 8
MAX_STOP_CHARS: Final = 64
MAX_TOOLS: Final = 32
MAX_TOOL_NAME_CHARS: Final = 64
MAX_TOOL_DESCRIPTION_CHARS: Final = 2048
MAX_TOOL_SCHEMA_CHARS: Final = 8192
MAX_TOOL_ARGUMENT_CHARS: Final = 32 * 1024
MAX_TOOL_CALLS: Final = 16
MAX_DEADLINE_S: Final = 3600
MAX_TEMPERATURE: Final = 2.0
PROGRESS_INTERVAL_S: Final = 1.0  # a provider sends something at least this often
STALL_S: Final = 3.0  # a requester gives a provider up of which nothing moved for this long

# query
MAX_QUERY_CHARS: Final = 1024
MAX_PASSAGES: Final = 32
MAX_TITLE_CHARS: Final = 200
MAX_PASSAGE_CHARS: Final = 4096
MAX_FOLDER_CHARS: Final = 64

# mail
MAX_MAIL_CHARS: Final = 32 * 1024
MAIL_WINDOW: Final = 64  # messages sent but not yet acknowledged

# models
MAX_MODEL_CHUNK_BYTES: Final = MAX_BIN_BYTES
MODEL_STALL_S: Final = 15.0  # a copier that hears nothing for this long gives the stream up, and tries again

# receipts
MAX_RECEIPTS: Final = 64  # on one stream, asked for or handed in

# grants
MAX_GRANT_MODELS: Final = 32
MAX_TOKENS_PER_DAY: Final = 10**12
MAX_CONCURRENCY: Final = 64
HALF_HOURS_A_DAY: Final = 48
MAX_DERIVED_GRANTS: Final = 4  # narrower grants in a row, the first one not counted

# link timing
BEAT_INTERVAL_S: Final = 0.7
LINK_DEAD_S: Final = 2.0

# ---- implementation: local choices -----------------------------------------------------------------------------------

QUEUED_STILL_S: Final = 60.0  # so long an answer may stand at one place of a queue
LOADING_STILL_S: Final = 90.0  # so long a model may load, or be started again
HELLO_TIMEOUT_S: Final = 5.0
MAX_LINK_FRAMES_PER_S: Final = 50
MAX_REWINDS: Final = 8  # Nacks in a row without a new acknowledgement before a mail stream is given up
QUERY_TIMEOUT_S: Final = 10.0
PAIRING_WINDOW_S: Final = 600.0
PAIRING_STEP_TIMEOUT_S: Final = 15.0
PAIRING_OWNER_TIMEOUT_S: Final = 180.0  # a person compares three pictures and says yes
FINGERPRINT_WORDS: Final = 6  # 66 bits
