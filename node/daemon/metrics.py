"""The node's figures in the text form of Prometheus, made when somebody scrapes.

Counts and states only: no name, id, address or text of anybody. Must not know HTTP or who reads.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from node.api.views import HealthView, StatusView
from node.net.turned_away import TurnedAway
from node.privacy.traffic import Count
from node.store.usage import DayUsage

__all__ = ["MetricSources", "Metrics"]

MODES = ("offline", "lan", "online")


@dataclass(frozen=True, slots=True)
class MetricSources:
    """Where the figures come from; each is asked once per scrape."""

    status: Callable[[], StatusView]
    health: Callable[[], Awaitable[HealthView]]
    restarts: Callable[[], Awaitable[int]]
    """How often a model's process had to be started again."""
    traffic: Callable[[], Mapping[str, Count]]
    """What was handed to the transport since the start, by kind."""
    used_today: Callable[[], Awaitable[Sequence[DayUsage]]]
    """What peers used of the models here today."""
    turned_away: Callable[[], TurnedAway] = TurnedAway
    """What the network did not let in."""


class Metrics:
    """The figures of one node. Implements node.api.ports.Measuring."""

    def __init__(self, sources: MetricSources) -> None:
        self._sources = sources

    async def text(self) -> bytes:
        """One scrape. A figure that is not known is left out."""
        sources = self._sources
        reading = _Reading(
            sources.status(), await sources.health(), await sources.restarts(), sources.traffic(),
            await sources.used_today(), sources.turned_away(),
        )
        registry = CollectorRegistry()
        registry.register(reading)
        ProcessCollector(registry=registry)
        return generate_latest(registry)


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """One moment, as prometheus_client asks for it."""

    status: StatusView
    health: HealthView
    restarts: int
    traffic: Mapping[str, Count]
    used_today: Sequence[DayUsage]
    away: TurnedAway

    def collect(self) -> Iterator[Metric]:
        status, health = self.status, self.health
        build = GaugeMetricFamily("kith_build", "The version that runs; always 1.", labels=["version"])
        build.add_metric([status.version], 1)
        yield build
        yield GaugeMetricFamily("kith_uptime_seconds", "Since the node began to start.", value=status.uptime_s)
        yield GaugeMetricFamily(
            "kith_ready", "1 when a token was produced, or there is no model to produce one.", value=health.ready
        )
        mode = GaugeMetricFamily("kith_mode", "1 for the mode the node is in.", labels=["mode"])
        for name in MODES:
            mode.add_metric([name], status.mode == name)
        yield mode
        yield GaugeMetricFamily("kith_peers_paired", "Paired peers.", value=len(status.peers))
        present = sum(peer.connected for peer in status.peers)
        yield GaugeMetricFamily("kith_peers_present", "Paired peers that are here.", value=present)
        yield GaugeMetricFamily("kith_messages_waiting", "Messages not delivered yet.", value=status.queued_messages)
        yield from self._engine()
        yield from self._left()
        turned = CounterMetricFamily(
            "kith_turned_away", "Calls and streams that were not let in, by reason.", labels=["reason"])
        turned.add_metric(["calls_too_fast"], self.away.calls)
        turned.add_metric(["not_paired"], self.away.strangers)
        turned.add_metric(["streams_too_fast"], self.away.streams)
        yield turned

    def _engine(self) -> Iterator[Metric]:
        health = self.health
        yield GaugeMetricFamily("kith_engine_requests_running", "Answers being written.", value=health.running)
        yield GaugeMetricFamily("kith_engine_requests_queued", "Requests that wait their turn.", value=health.queued)
        if health.last_token_age_s is not None:
            yield GaugeMetricFamily(
                "kith_engine_last_token_age_seconds", "Since a token was last produced.", value=health.last_token_age_s
            )
        yield CounterMetricFamily(
            "kith_engine_restarts", "Times a model's process had to be started again.", value=self.restarts
        )
        used = self.used_today
        requests = sum(one.requests for one in used)
        yield GaugeMetricFamily("kith_peer_requests_today", "Requests of peers served since 0:00 UTC.", value=requests)
        tokens = GaugeMetricFamily(
            "kith_peer_tokens_today", "Tokens used by peers since 0:00 UTC, by kind.", labels=["kind"]
        )
        tokens.add_metric(["prompt"], sum(one.prompt_tokens for one in used))
        tokens.add_metric(["output"], sum(one.output_tokens for one in used))
        yield tokens

    def _left(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "kith_ledger_entries_today", "Ledger entries since 0:00 UTC.", value=self.status.left_today_entries
        )
        yield GaugeMetricFamily(
            "kith_kept_back_today", "Sendings that the guard refused since 0:00 UTC.", value=self.status.kept_back_today
        )
        sent = CounterMetricFamily(
            "kith_sent_bytes", "Bytes handed to the transport, by kind.", labels=["kind"]
        )
        frames = CounterMetricFamily(
            "kith_sent_frames", "Frames handed to the transport, by kind.", labels=["kind"]
        )
        for kind, count in sorted(self.traffic.items()):
            sent.add_metric([kind], count.bytes)
            frames.add_metric([kind], count.frames)
        yield sent
        yield frames
