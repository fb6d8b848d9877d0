"""The figures as a scraper reads them, with Prometheus' own parser; and that nobody is named in them."""

from prometheus_client.parser import text_string_to_metric_families

from node.api.views import HealthView, PeerView, StatusView
from node.daemon.metrics import Metrics, MetricSources
from node.net.turned_away import TurnedAway
from node.privacy.traffic import Traffic
from node.store.usage import DayUsage

NAME, PEER_ID = "amber-otter", "12D3KooWAnnaAnnaAnna"


def peer(name: str, *, connected: bool) -> PeerView:
    return PeerView(
        peer_id=PEER_ID, name=name, trust="home", their_trust="self", connected=connected, route="direct 10.0.0.7",
        rtt_ms=1.0, model="secret-model", last_contact=None, waiting_messages=0,
    )


def sources(*, age_s: float | None = 1.5, ready: bool = True) -> MetricSources:
    status = StatusView(
        version="0.1.0", name=NAME, peer_id="12D3KooWself", mode="lan", stage="ready", uptime_s=12.5,
        model="secret-model", model_state="ready", addresses=["/ip4/10.0.0.1/tcp/4001"],
        peers=[peer("home-pc", connected=True), peer("anna", connected=False)], queued_messages=3,
        left_today_entries=4, left_today_bytes=500, kept_back_today=1,
    )
    traffic = Traffic()
    traffic.add(PEER_ID, "infer", 300)
    traffic.add("12D3KooWother", "infer", 200)
    traffic.add(PEER_ID, "control", 20)

    async def health() -> HealthView:
        return HealthView(state="ready", ready=ready, running=2, queued=1, last_token_age_s=age_s)

    async def restarts() -> int:
        return 7

    async def used_today() -> list[DayUsage]:
        return [DayUsage(PEER_ID, "2026-01-01", 2, 100, 20), DayUsage("12D3KooWother", "2026-01-01", 1, 11, 3)]

    return MetricSources(lambda: status, health, restarts, traffic.by_kind, used_today, lambda: TurnedAway(5, 6, 7))


async def scrape(given: MetricSources) -> tuple[str, dict[tuple[str, str], float]]:
    text = (await Metrics(given).text()).decode()
    samples = {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text) for sample in family.samples
    }
    return text, samples


async def test_the_figures_are_those_of_the_node() -> None:
    _, found = await scrape(sources())
    assert {key: value for key, value in found.items() if key[0].startswith("kith_")} == {
        ("kith_build", "0.1.0"): 1, ("kith_uptime_seconds", ""): 12.5, ("kith_ready", ""): 1,
        ("kith_mode", "offline"): 0, ("kith_mode", "lan"): 1, ("kith_mode", "online"): 0,
        ("kith_peers_paired", ""): 2, ("kith_peers_present", ""): 1, ("kith_messages_waiting", ""): 3,
        ("kith_engine_requests_running", ""): 2, ("kith_engine_requests_queued", ""): 1,
        ("kith_engine_last_token_age_seconds", ""): 1.5, ("kith_engine_restarts_total", ""): 7,
        ("kith_peer_requests_today", ""): 3, ("kith_peer_tokens_today", "prompt"): 111,
        ("kith_peer_tokens_today", "output"): 23, ("kith_ledger_entries_today", ""): 4,
        ("kith_kept_back_today", ""): 1, ("kith_sent_bytes_total", "infer"): 500,
        ("kith_sent_bytes_total", "control"): 20, ("kith_sent_frames_total", "infer"): 2,
        ("kith_sent_frames_total", "control"): 1, ("kith_turned_away_total", "calls_too_fast"): 5,
        ("kith_turned_away_total", "not_paired"): 6, ("kith_turned_away_total", "streams_too_fast"): 7,
    }
    assert found["process_resident_memory_bytes", ""] > 1e6


async def test_what_is_not_known_is_left_out_and_not_ready_is_zero() -> None:
    _, found = await scrape(sources(age_s=None, ready=False))
    assert ("kith_engine_last_token_age_seconds", "") not in found
    assert found["kith_ready", ""] == 0


async def test_nobody_is_named() -> None:
    text, _ = await scrape(sources())
    for name in (NAME, PEER_ID, "12D3Koo", "home-pc", "anna", "10.0.0", "secret-model"):
        assert name not in text
