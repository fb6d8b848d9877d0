"""The tables of kith.db and index.db, as numbered steps. A released step never changes; append a new one.

Times are whole milliseconds since 1970 in UTC. Must not hold any statement that reads or writes rows.
"""

from node.store.migrations import Schema

__all__ = ["INDEX", "KITH"]

_FIRST: tuple[str, ...] = (
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE peers (
        peer_id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        trust TEXT NOT NULL CHECK (trust IN ('self', 'home', 'friend', 'none')),
        their_trust TEXT NOT NULL CHECK (their_trust IN ('self', 'home', 'friend', 'none')),
        addresses TEXT NOT NULL,
        paired_ms INTEGER NOT NULL,
        seen_ms INTEGER
    ) STRICT""",
    # No reference to peers: a revoked grant outlives the peer, so that its epoch is never used again.
    """CREATE TABLE grants (
        peer_id TEXT NOT NULL,
        direction TEXT NOT NULL CHECK (direction IN ('issued', 'received')),
        epoch INTEGER NOT NULL,
        blob BLOB NOT NULL,
        stored_ms INTEGER NOT NULL,
        revoked_ms INTEGER,
        PRIMARY KEY (peer_id, direction, epoch)
    ) STRICT""",
    # One counter for all peers: a number handed out for a pairing that then failed is never used again either.
    "CREATE TABLE grant_epoch (slot INTEGER PRIMARY KEY CHECK (slot = 1), last INTEGER NOT NULL) STRICT",
    """CREATE TABLE ledger (
        seq INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        request_id TEXT NOT NULL,
        peer_id TEXT NOT NULL,
        purpose TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        entry BLOB NOT NULL,
        outgoing BLOB,
        closed BLOB,
        closed_ms INTEGER
    ) STRICT""",
    "CREATE INDEX ledger_by_peer ON ledger (peer_id, seq)",
    "CREATE INDEX ledger_by_time ON ledger (at_ms, seq)",
    "CREATE INDEX ledger_by_request ON ledger (request_id)",
    "CREATE INDEX ledger_open ON ledger (seq) WHERE closed IS NULL",
    """CREATE TABLE outbox (
        peer_id TEXT NOT NULL,
        seq INTEGER NOT NULL CHECK (seq > 0),
        message_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'delivered', 'expired')),
        created_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        settled_ms INTEGER,
        PRIMARY KEY (peer_id, seq)
    ) STRICT""",
    "CREATE INDEX outbox_pending ON outbox (expires_ms) WHERE state IN ('queued', 'sent')",
    """CREATE TABLE inbox (
        arrival INTEGER PRIMARY KEY,
        peer_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        message_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        sent_ms INTEGER NOT NULL,
        received_ms INTEGER NOT NULL,
        read_ms INTEGER,
        UNIQUE (peer_id, seq),
        UNIQUE (peer_id, message_id)
    ) STRICT""",
    # allocated: last number given out here; acked: the peer has all up to here; received: we have all up to here.
    """CREATE TABLE mail_marks (
        peer_id TEXT PRIMARY KEY,
        allocated INTEGER NOT NULL DEFAULT 0,
        acked INTEGER NOT NULL DEFAULT 0,
        received INTEGER NOT NULL DEFAULT 0,
        CHECK (acked <= allocated)
    ) STRICT""",
    """CREATE TABLE conversations (
        conversation_id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        confidentiality INTEGER NOT NULL,
        integrity INTEGER NOT NULL,
        draft TEXT,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX conversations_by_time ON conversations (updated_ms)",
    """CREATE TABLE turns (
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        number INTEGER NOT NULL,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        confidentiality INTEGER NOT NULL,
        integrity INTEGER NOT NULL,
        ran_on TEXT NOT NULL,
        sources TEXT NOT NULL,
        detail TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (conversation_id, number)
    ) STRICT""",
    """CREATE TABLE approvals (
        approval_id TEXT PRIMARY KEY,
        conversation_id TEXT,
        kind TEXT NOT NULL,
        shown TEXT NOT NULL,
        decision TEXT NOT NULL CHECK (decision IN ('pending', 'approved', 'denied', 'expired')),
        asked_ms INTEGER NOT NULL,
        decided_ms INTEGER
    ) STRICT""",
    """CREATE TABLE journal (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        run_id TEXT NOT NULL,
        step TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('planned', 'approved', 'denied', 'applied', 'undone', 'failed')),
        plan TEXT NOT NULL,
        decision TEXT,
        record TEXT,
        applied_order INTEGER,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX journal_by_run ON journal (run_id, number)",
    """CREATE TABLE pairing_window (
        slot INTEGER PRIMARY KEY CHECK (slot = 1),
        code TEXT,
        secret BLOB,
        trust TEXT NOT NULL,
        tries_left INTEGER NOT NULL CHECK (tries_left >= 0),
        opened_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE shares (
        folder TEXT NOT NULL,
        peer_id TEXT NOT NULL,
        added_ms INTEGER NOT NULL,
        PRIMARY KEY (folder, peer_id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE usage (
        peer_id TEXT NOT NULL,
        day TEXT NOT NULL,
        requests INTEGER NOT NULL DEFAULT 0,
        prompt_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (peer_id, day)
    ) STRICT, WITHOUT ROWID""",
)

# What of each peer waits unread, so that taking a message need not count the others. Earlier messages count as read.
_UNREAD: tuple[str, ...] = (
    "ALTER TABLE mail_marks ADD COLUMN unread INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE mail_marks ADD COLUMN unread_bytes INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX inbox_unread ON inbox (peer_id, arrival) WHERE read_ms IS NULL",
)

# Whose text an entry holds; the exact bytes beside the texts; a note where they were erased; what peers signed for,
# and what this node owes them; and from where on the chain is still there.
_LEDGER_SIDES: tuple[str, ...] = (
    "ALTER TABLE ledger ADD COLUMN conversation TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE ledger ADD COLUMN frames BLOB",
    "ALTER TABLE ledger ADD COLUMN dropped BLOB",
    "CREATE INDEX ledger_by_conversation ON ledger (conversation) WHERE conversation != ''",
    "CREATE INDEX ledger_kept ON ledger (at_ms) WHERE dropped IS NULL",
    """CREATE TABLE ledger_checkpoint (
        slot INTEGER PRIMARY KEY CHECK (slot = 1),
        record BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE receipts (
        seq INTEGER NOT NULL,
        digest BLOB NOT NULL,
        size_bytes INTEGER NOT NULL,
        signature BLOB NOT NULL,
        received_ms INTEGER NOT NULL,
        PRIMARY KEY (seq, digest, size_bytes)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE owed_receipts (
        number INTEGER PRIMARY KEY,
        peer_id TEXT NOT NULL,
        purpose TEXT NOT NULL,
        request_id BLOB NOT NULL,
        size_bytes INTEGER NOT NULL,
        digest BLOB NOT NULL,
        at_ms INTEGER NOT NULL,
        sent_ms INTEGER,
        UNIQUE (peer_id, purpose, request_id, digest)
    ) STRICT""",
    "CREATE INDEX owed_receipts_named ON owed_receipts (request_id)",
    "CREATE INDEX owed_receipts_waiting ON owed_receipts (peer_id, number) WHERE sent_ms IS NULL",
)

# What the owner decided about disclosure, beside the table in the code; and the owner's passwords, sealed.
_DECISIONS: tuple[str, ...] = (
    """CREATE TABLE levels (
        peer_id TEXT NOT NULL,
        purpose TEXT NOT NULL,
        conversation TEXT NOT NULL DEFAULT '',
        level TEXT NOT NULL CHECK (level IN ('never', 'masked', 'public', 'clear')),
        set_ms INTEGER NOT NULL,
        PRIMARY KEY (peer_id, purpose, conversation)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE denials (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        peer_id TEXT NOT NULL,
        purpose TEXT NOT NULL,
        made_ms INTEGER NOT NULL,
        UNIQUE (peer_id, purpose)
    ) STRICT""",
    """CREATE TABLE credentials (
        name TEXT PRIMARY KEY,
        purpose TEXT NOT NULL,
        sealed BLOB NOT NULL,
        added_ms INTEGER NOT NULL,
        used_ms INTEGER
    ) STRICT, WITHOUT ROWID""",
)

# Requests that wait for a better answer; with a conversation what was asked in it goes too.
_INTENTS: tuple[str, ...] = (
    """CREATE TABLE intents (
        intent_id TEXT PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        place TEXT NOT NULL,
        model TEXT,
        title TEXT NOT NULL,
        job BLOB NOT NULL,
        state TEXT NOT NULL CHECK (state IN (
            'waiting', 'needs_consent', 'running', 'done', 'cancelled', 'expired', 'refused', 'failed')),
        reason TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        question TEXT,
        allowed_digest TEXT,
        ran_on TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        seen_ms INTEGER
    ) STRICT""",
    "CREATE INDEX intents_by_conversation ON intents (conversation_id)",
    "CREATE INDEX intents_live ON intents (expires_ms) WHERE state IN ('waiting', 'needs_consent', 'running')",
)

# Answers that are being written, piece by piece, so that a killed node goes on with them.
_ANSWERS: tuple[str, ...] = (
    """CREATE TABLE answers (
        request_id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        job BLOB NOT NULL,
        carried BLOB,
        legs BLOB NOT NULL,
        begun_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE answer_pieces (
        request_id TEXT NOT NULL REFERENCES answers ON DELETE CASCADE,
        number INTEGER NOT NULL,
        text TEXT NOT NULL,
        thought TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        token_ids BLOB NOT NULL,
        calls BLOB NOT NULL,
        PRIMARY KEY (request_id, number)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX answers_by_conversation ON answers (conversation_id)",
)

_REMINDERS: tuple[str, ...] = (
    """CREATE TABLE reminders (
        reminder_id TEXT PRIMARY KEY,
        text TEXT NOT NULL,
        due_ms INTEGER NOT NULL,
        made_ms INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'told', 'cancelled')),
        told_ms INTEGER,
        missed INTEGER NOT NULL DEFAULT 0 CHECK (missed IN (0, 1)),
        seen_ms INTEGER
    ) STRICT""",
    "CREATE INDEX reminders_due ON reminders (due_ms) WHERE state = 'waiting'",
)

_LESSONS: tuple[str, ...] = (
    """CREATE TABLE lessons (
        lesson_id TEXT PRIMARY KEY,
        text TEXT NOT NULL,
        tool TEXT NOT NULL,
        words TEXT NOT NULL,
        made_ms INTEGER NOT NULL
    ) STRICT""",
)

# Why a message is over without being delivered; empty where it was, or where only its time ran out.
_WITHHELD: tuple[str, ...] = ("ALTER TABLE outbox ADD COLUMN reason TEXT NOT NULL DEFAULT ''",)

KITH = Schema("kith", (
    _FIRST, _UNREAD, _LEDGER_SIDES, _DECISIONS, _INTENTS, _ANSWERS, _REMINDERS, _LESSONS, _WITHHELD,
))

_INDEX_FIRST: tuple[str, ...] = (
    "CREATE TABLE marks (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
)

_FULL_TEXT: tuple[str, ...] = (
    # Every text stands once, in passages; the FTS5 table holds its terms only (external content).
    """CREATE TABLE documents (
        doc INTEGER PRIMARY KEY,
        folder TEXT NOT NULL,
        name TEXT NOT NULL,
        label TEXT NOT NULL,
        title TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        digest BLOB NOT NULL,
        UNIQUE (folder, name)
    ) STRICT""",
    """CREATE TABLE passages (
        passage INTEGER PRIMARY KEY,
        doc INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
        title TEXT NOT NULL,
        body TEXT NOT NULL,
        length INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX passages_by_doc ON passages (doc, length)",
    """CREATE VIRTUAL TABLE terms USING fts5(
        title, body, content='passages', content_rowid='passage', tokenize='porter unicode61')""",
    "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, 'row')",
    "CREATE VIRTUAL TABLE occurrences USING fts5vocab(terms, 'instance')",
)

INDEX = Schema("index", (_INDEX_FIRST, _FULL_TEXT))
