"""Builds the engine of one node: its own workers, and another program or another machine where one is set.

Pure construction. Must not know agents, peers or the network.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import trio

from node.clock import Entropy
from node.config import Config
from node.daemon.rotation import engine_key
from node.errors import ConfigError, KithError
from node.identity.keystore import Identity
from node.paths import Paths
from node.privacy.credentials import CredentialStore
from offload.joined_engine import JoinedEngine
from offload.kv_vault import KvVault
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.upstream import UpstreamEngine, UpstreamSettings
from offload.upstream_errors import UpstreamMisconfigured
from offload.upstream_place import parse_place
from offload.workload import Workload

__all__ = ["EngineParts", "build_engine"]

MODEL_IDLE_S = 15 * 60.0        # then its worker ends; what it had read of prompts comes back from disk
MOST_LOADED_MODELS = 2
SHARED_MODELS = Path(sys.prefix) / "share" / "kith" / "models"


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The engine, the folders its models come from, and the engine elsewhere that it can't reach by itself, if any."""

    engine: JoinedEngine
    model_folders: list[Path]
    elsewhere: UpstreamSettings | None
    workload: Workload


def _upstream_settings(config: Config, credentials: CredentialStore) -> UpstreamSettings | None:
    """The engine of another program, when one is set. Raises ConfigError for one elsewhere whose models are not named.
    """
    async def key() -> str:
        try:
            return await credentials.use(wanted.key, "upstream")
        except KithError as error:
            raise UpstreamMisconfigured(f"The key of upstream.key is not there: {error.text}") from error

    wanted = config.settings.upstream
    if not wanted.url:
        return None
    if not wanted.models and not parse_place(wanted.url).here:
        raise ConfigError("upstream.models must name the models of an engine on another machine: it is not asked.")
    pairs = (one.partition("=") for one in wanted.models)
    return UpstreamSettings(
        wanted.url, wanted.kind, {here: there or here for here, _, there in pairs},
        key_file=Path(wanted.key_file).expanduser() if wanted.key_file else None,
        ca_file=Path(wanted.ca_file).expanduser() if wanted.ca_file else None,
        context_tokens=wanted.context_tokens,
        key=key if wanted.key else None,
    )


def build_engine(
    config: Config, paths: Paths, identity: Identity, entropy: Entropy, credentials: CredentialStore,
) -> EngineParts:
    """All of it, not running yet. Raises ConfigError for settings that name nothing usable."""
    settings = config.settings.models
    upstream = _upstream_settings(config, credentials)
    elsewhere = upstream is not None and not parse_place(upstream.url).here
    nearby = UpstreamEngine(upstream) if upstream is not None and not elsewhere else None
    model_folders = [paths.models_dir, *(Path(one).expanduser() for one in settings.folders), SHARED_MODELS]
    local = LocalEngine(
        model_folders,
        cache_dir=paths.state_dir, default_model=settings.default or None,
        limits=HostLimits(
            context_tokens=settings.context_tokens, gpu_layers=settings.gpu_layers, idle_stop_s=MODEL_IDLE_S,
            memory_bytes=settings.memory_mb * 1024 * 1024),
        threads=settings.threads or None, most_loaded=MOST_LOADED_MODELS,
        vault=KvVault(paths.kv_dir, engine_key(paths, identity, entropy), entropy.bytes),
    )
    workload = Workload(trio.current_time)
    engine = JoinedEngine(local, nearby, default_model=settings.default or None, workload=workload)
    return EngineParts(engine, model_folders, upstream if elsewhere else None, workload)
