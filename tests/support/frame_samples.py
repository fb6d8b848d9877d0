"""One or two specimens of every frame of every protocol, by name; golden bytes, fuzz and registry tests share them."""

import msgspec

from protocol import names
from protocol.frames import inference, link, mail, model, pairing, query, receipt
from protocol.ids import peer_id_from_public_key

__all__ = ["DIGEST", "ID", "OTHER_ID", "PEER_A", "PEER_B", "SAMPLES"]

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))
DIGEST = "ab" * 32
PEER_A = peer_id_from_public_key(bytes([0xA1]) * 32)
PEER_B = peer_id_from_public_key(bytes([0xB0]) * 32)

_MAC = bytes(range(100, 132))
_ADVERT = link.ModelAdvert("SmolLM2-135M-Instruct", DIGEST, 2048, True, "Q4_0", 1100, 9000, 850)
_PARTS = inference.PromptParts((inference.Part("system", "Be brief."), inference.Part("user", "Wer bist du? ☕")))
_CALL = inference.PastCall("calendar_free", '{"minutes":', "c1")
_TALK = inference.PromptParts((
    inference.Part("user", "Am I free?"), inference.Part("assistant", "", (_CALL,), thought="The calendar knows."),
    inference.Part("tool", "no such time", call_id="c1"),
))
_TOOL = inference.ToolOffer("calendar_free", "Finds free time.", '{"type":"object"}')

SAMPLES: dict[str, dict[str, msgspec.Struct]] = {
    names.LINK: {
        "hello": link.Hello(
            "amber-otter-41", "0.1.0", names.PROTOCOLS, ("infer", "mail"), (_ADVERT,), b"\x01\x02", "home"),
        "hello_bare": link.Hello("a", "1.2.3rc1", (), (), ()),
        "beat": link.Beat(7),
        "echo": link.Echo(4294967295),
        "advert": link.Advert((_ADVERT,), link.Load(2, 1, 30_000, True)),
        "granted": link.Granted(b"\x01\x02"),
        "granted_nothing": link.Granted(b""),
        "located": link.Located(b"\x01\x02", "/ip4/203.0.113.2/tcp/4711"),
        "located_unseen": link.Located(b""),
        "bye": link.Bye("shutdown"),
    },
    names.PAIR: {
        "start_code": pairing.StartCode(b"A" + _MAC),
        "reply_code": pairing.ReplyCode(b"B" + _MAC),
        "start_secret": pairing.StartSecret(_MAC),
        "reply_secret": pairing.ReplySecret(_MAC[::-1]),
        "confirm": pairing.PairConfirm(_MAC),
        "card": pairing.PairCard(
            pairing.CardBody("home-pc", "home", ("/ip4/192.0.2.7/tcp/4001", "/ip6/2001:db8::7/tcp/4001"), b"\x01\x02"),
            _MAC,
        ),
        "accept": pairing.PairAccept(_MAC),
        "refused": pairing.PairRefused("no_match"),
    },
    names.INFER: {
        "request": inference.InferRequest(
            request_id=ID, lane="exact", model_digest=DIGEST, model_name="Qwen/Qwen3.5-0.8B", prompt=_PARTS,
            text_so_far="Ich bin", token_ids_so_far=(5, 70000), resume_cursor=2, max_tokens=256, temperature=0.5,
            seed=42, stop=("\n\n",), tools=(_TOOL,), deadline_s=60, prefix_key=OTHER_ID,
        ),
        "request_bare": inference.InferRequest(
            request_id=ID, prompt=inference.PromptParts((inference.Part("user", "Hi"),)), max_tokens=1, deadline_s=1
        ),
        "request_tokens": inference.InferRequest(
            request_id=ID, model_digest=DIGEST, prompt=inference.PromptTokens((1, 2, 4294967295)), max_tokens=9,
            deadline_s=5,
        ),
        "request_tools": inference.InferRequest(
            request_id=ID, model_digest=DIGEST, prompt=_TALK, token_ids_so_far=(7,), resume_cursor=1, max_tokens=64,
            tools=(_TOOL,), deadline_s=30, tool_choice="required", named_tool="calendar_free", parallel_calls=True,
            thinking_tokens=128, thought_so_far="Let me look.", calls_so_far=1,
        ),
        "accepted": inference.Accepted(ID, DIGEST, 3),
        "refused": inference.Refused(ID, "context_too_long", 2048),
        "refused_bare": inference.Refused(ID, "busy", None),
        "refused_hours": inference.Refused(ID, "outside_hours", None, 5400),
        "progress": inference.Progress(ID, "prefill", 0, 512, 1500, 0),
        "progress_queued": inference.Progress(ID, "queued", 3, 0, 0, 0, 90),
        "token": inference.TokenFrame(ID, 2, " Kith ☕", 2, (11, 12), bytes(16)),
        "token_hidden_ids": inference.TokenFrame(ID, 3, "", 1, (), bytes(16)),
        "token_thought": inference.TokenFrame(ID, 0, "", 1, (9,), bytes(16), "Hm."),
        "tool_call": inference.ToolCallFrame(ID, 4, "calendar_free", '{"minutes":60}'),
        "tool_call_repaired": inference.ToolCallFrame(ID, 5, "calendar_free", '{"minutes":60}', True),
        "usage": inference.Usage(ID, 1500, 1400, 256),
        "end": inference.End(ID, "stop", 256, bytes(16), DIGEST),
        "cancel": inference.Cancel(ID),
        "error": inference.ErrorFrame(ID, "engine_failed"),
        "error_limit": inference.ErrorFrame(ID, "quota", 1000, 7200),
    },
    names.QUERY: {
        "query": query.Query(ID, "train to Łódź", 5),
        "answer": query.Answer(ID, (query.Passage(OTHER_ID, "Trips", "The 9:40 is quickest.", "travel"),)),
        "refused": query.QueryRefused(ID, "not_granted"),
        "end": query.QueryEnd(ID, 1),
    },
    names.MAIL: {
        "mail": mail.Mail(1, ID, "chat.msg", "See you at six? ☕", 1_780_000_000_000),
        "ack": mail.Ack(0),
        "nack": mail.Nack(2),
        "gap": mail.Gap(9007199254740991),
        "refused": mail.MailRefused("full"),
    },
    names.MODEL: {
        "request": model.ModelRequest(ID, DIGEST, 65536),
        "offer": model.ModelOffer(ID, DIGEST, 98362432, "smollm2-135m-instruct", "apache-2.0"),
        "offer_bare": model.ModelOffer(ID, DIGEST, 1, "a", None),
        "chunk": model.ModelChunk(ID, 65536, bytes(range(8))),
        "end": model.ModelEnd(ID, 98362432),
        "refused": model.ModelRefused(ID, "model_absent"),
    },
    names.RECEIPT: {
        "receipt": receipt.Receipt(ID, "infer", 1234, _MAC, bytes(range(64))),
        "wanted": receipt.ReceiptsWanted((ID, OTHER_ID)),
        "end": receipt.ReceiptsEnd(2),
    },
}
"""Protocol id -> specimen name -> frame."""
