"""The models of this device as the owner manages them. Implements node.api.ports.Models.

A file is copied, never moved; its inside is read in a box; and it only counts once its digest is recorded. Must not
know what a model computes.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import trio

from node.api.ports import Emit
from node.api.views import ModelDetail, ModelView
from node.daemon.hub import HubDesk
from node.daemon.model_copies import PREFIX as PEER
from node.daemon.model_copies import CopyDesk
from node.daemon.style_trial import Verdict
from node.errors import KithError, ModelMissing, UsageError
from offload.catalogue import Catalogue, ModelFile, write_record
from offload.errors import ModelUnusable, OffloadError
from offload.gguf import ModelFacts
from offload.hub_names import PREFIX, parse_reference
from offload.joined_engine import JoinedEngine
from offload.model_errors import AdapterAlone
from offload.model_facts import model_facts
from offload.model_folder import ModelFolder
from offload.model_packages import PREFIX as PACKAGE
from offload.model_packages import models_of_package
from offload.ports import AdapterInfo, ModelInfo

__all__ = ["ModelShelf"]

GONE = "a model that is gone"
"""What stands for the name of an adapter's model once that was removed."""
_FILES_LIMIT = 64


class ModelShelf:
    """Lists, shows, adds, chooses and removes models."""

    def __init__(
        self, engine: JoinedEngine, folders: Sequence[Path], digest_cache: Path, hub: HubDesk, copies: CopyDesk,
        keep_default: Callable[[str], None], trial: Callable[[str], Awaitable[Verdict | None]] | None = None,
    ) -> None:
        """folders: where models lie, kith's own one first. keep_default: remember a choice for the next start.

        trial: finds out how a model, by its digest, keeps placeholders best; None when it cannot tell.
        """
        self._trial = trial
        self._engine = engine
        self._folders = tuple(folders)
        self._own = ModelFolder(folders[0])
        self._digest_cache = digest_cache
        self._hub = hub
        self._copies = copies
        self._keep_default = keep_default
        self._adding = trio.Lock()

    async def all(self) -> list[ModelView]:
        """Every model, the default first, then the adapters."""
        models = [_view(info, default=at == 0) for at, info in enumerate(await self._engine.models())]
        names = {view.digest: view.name for view in models}
        adapters = await self._engine.adapters()
        return [*models, *(_adapter_view(info, names.get(info.base, GONE)) for info in adapters)]

    async def default(self) -> ModelInfo | None:
        """The model that answers here; None when there is none."""
        found = await self._engine.models()
        return found[0] if found else None

    async def adapter_named(self, name: str) -> str:
        """The digest of an adapter of the default model. Raises ModelMissing."""
        models = await self._engine.models()
        here = [one for one in await self._engine.adapters() if models and one.base == models[0].digest]
        for one in here:
            if name.lower() in (one.name.lower(), one.digest):
                return one.digest
        others = [view for view in await self.all() if view.base and name in (view.name, view.digest)]
        if others:
            raise ModelMissing(
                f"{others[0].name} is an adapter for {others[0].base}, and another model answers here.",
                hint=f"Let that one answer: kith models use {others[0].base}")
        known = ", ".join(one.name for one in here)
        raise ModelMissing(
            f"There is no adapter called {name} for the model here"
            f"{f'; there is: {known}' if known else ', nor any other'}.",
            hint="See them: kith models; add one: kith models add FILE")

    async def info(self, name: str) -> ModelDetail:
        """Everything known of one model, its file's own words included where it has any. Raises ModelMissing."""
        view = await self._named(name)
        file = await self._file_of(view.digest)
        if file is None:
            return ModelDetail(model=view, source="a server of this machine: kith config explain")
        health = await self._engine.health()
        gpu = health.gpu if health.model is not None and health.model.digest == view.digest else ""
        try:
            facts = await model_facts(file.path)
        except ModelUnusable as error:
            broken = msgspec.structs.replace(view, broken=view.broken or str(error))
            return ModelDetail(model=broken, file=str(file.path), source=file.record.source)
        return ModelDetail(
            model=view, file=str(file.path), source=file.record.source, architecture=facts.architecture,
            title=facts.name, organisation=facts.organisation, parameters=facts.parameters, layers=facts.layers,
            vocabulary=facts.vocabulary, trained_context_tokens=facts.context_tokens,
            chat_template=facts.has_template, template_knows_tools=facts.template_knows_tools,
            licence_in_file=facts.licence or "not stated", gpu=gpu)

    async def add(self, source: str, emit: Emit) -> None:
        """Add a GGUF file, every one of a folder or an installed package (package:NAME), one of a hub
        (hf:OWNER/REPOSITORY[:FILE]), or one of a paired peer (peer:PEER/MODEL).

        Events: progress, skipped, added. Raises UsageError, KithError, offload.errors.OffloadError; nothing half-copied
        gets a model's name.
        """
        async with self._adding:
            await self._own.sweep()
            if source.startswith(PREFIX):
                await self._add_from_hub(source, emit)
                return
            if source.startswith(PEER):
                await self._add_from_peer(source, emit)
                return
            several, files = await trio.to_thread.run_sync(_files_of, source)
            if several:
                await self._add_each(files, emit)
            else:
                await self._add_file(files[0], emit, adapters=True)

    async def use(self, name: str) -> ModelView:
        """Make one model the default, now and at the next start; with an adapter its model, and the adapter for the
        owner's own requests. One that was left alone since its process died too often is tried again. Raises
        ModelMissing, ModelUnusable."""
        view = await self._named(name)
        if view.base == GONE:
            raise ModelUnusable(f"The model that {view.name} is for is not on this device.")
        if view.broken:
            raise ModelUnusable(f"{view.name} is broken: {view.broken}")
        self._engine.set_default(view.name)
        self._engine.release()
        await trio.to_thread.run_sync(self._keep_default, view.name)
        return msgspec.structs.replace(view, default=True)

    async def remove(self, name: str) -> ModelView:
        """Delete one model of kith's own folder. Raises ModelMissing, offload.model_errors.NotKept.

        An answer that is running goes on: its process still holds the file.
        """
        view = await self._named(name)
        file = await self._file_of(view.digest)
        if file is None:
            raise UsageError(f"{view.name} is a model of another program.", hint="Remove it there.")
        await self._own.remove(file.path)
        if view.default:
            left = view.base if view.base != GONE else ""
            self._engine.set_default(left)
            await trio.to_thread.run_sync(self._keep_default, left)
        self._engine.rescan()
        return view

    # -- inside --

    async def _base_of(self, facts: ModelFacts) -> str:
        """The digest of the model here that an adapter is for, by the name it gives or else the default one of those
        that fit; "" for a model. Raises AdapterAlone."""
        if not facts.adapter:
            return ""
        found = await trio.to_thread.run_sync(Catalogue(self._folders, self._digest_cache).scan)
        files = {file.digest: file for file in found if not file.record.adapter and not file.changed}
        fitting: list[str] = []
        for info in await self._engine.models():
            file = files.get(info.digest)
            if file is None or info.broken:
                continue
            other = await model_facts(file.path)
            if _fits(facts, other):
                if facts.adapter_base and facts.adapter_base.lower() in (info.name, other.name.lower()):
                    return info.digest
                fitting.append(info.digest)
        if not fitting:
            raise AdapterAlone()
        return fitting[0]

    async def _named(self, name: str) -> ModelView:
        views = await self.all()
        exact = [view for view in views if name in (view.name, view.digest)]
        found = exact or [view for view in views if len(name) >= 6 and view.digest.startswith(name)]
        if len(found) != 1:
            raise ModelMissing(f"There is no model called {name} on this device.", hint="See them: kith models")
        return found[0]

    async def _file_of(self, digest: str) -> ModelFile | None:
        found = await trio.to_thread.run_sync(Catalogue(self._folders, self._digest_cache).scan)
        return next((file for file in found if file.digest == digest), None)

    async def _add_each(self, files: Sequence[Path], emit: Emit) -> None:
        """Those of a folder that are models; the others are told. Raises what one was refused for when none is."""
        refused: OffloadError | UsageError | None = None
        taken, waiting = 0, list(files)
        for adapters in (False, True):      # adapters behind the models, one of which may be theirs
            left = []
            for file in waiting:
                try:
                    if await self._add_file(file, emit, adapters=adapters, may_skip=True):
                        taken += 1
                    else:
                        left.append(file)
                except (OffloadError, UsageError) as error:
                    refused = error
                    await emit({"event": "skipped", "file": file.name, "text": str(error)})
            waiting = left
        if refused is not None and not taken:
            raise refused

    async def _add_file(self, file: Path, emit: Emit, *, adapters: bool, may_skip: bool = False) -> bool:
        """False for an adapter, when adapters are not wanted now."""
        try:
            facts = await model_facts(file)
            if facts.adapter and not adapters:
                return False
            try:
                base = await self._base_of(facts)
            except AdapterAlone as alone:
                if not may_skip:
                    raise
                await emit({"event": "skipped", "file": file.name, "text": str(alone)})
                return True
            part, digest = await self._own.copy_in(file, _progress(emit))
            await self._admit(part, digest, file.name, facts, emit, base=base)
            return True
        except OSError as error:
            raise UsageError(f"{file} cannot be copied: {error.strerror}.", hint=f"Check: ls -l {file}") from error

    async def _add_from_hub(self, source: str, emit: Emit) -> None:
        reference = parse_reference(source)
        fetched = await self._hub.fetch(reference, self._own.path, _progress(emit))
        try:
            facts = await model_facts(fetched.part)
            base = await self._base_of(facts)
        except OffloadError:
            await self._own.drop(fetched.part)
            raise
        where = f"{self._hub.host}/{reference.repository}"
        await self._admit(fetched.part, fetched.digest, fetched.file_name, facts, emit, fetched.licence, where, base)

    async def _add_from_peer(self, source: str, emit: Emit) -> None:
        copied, peer = await self._copies.fetch(source, self._own.path, _progress(emit))
        try:
            facts = await model_facts(copied.part)
            base = await self._base_of(facts)
        except OffloadError:
            await self._own.drop(copied.part)
            raise
        await self._admit(copied.part, copied.digest, copied.name, facts, emit, copied.licence, f"{PEER}{peer}", base)

    async def _admit(
        self, part: Path, digest: str, file_name: str, facts: ModelFacts, emit: Emit, licence: str = "",
        source: str = "", base: str = "",
    ) -> None:
        views = await self.all()
        if any(view.digest == digest for view in views):
            await self._own.drop(part)
        else:
            await self._own.admit(
                part, digest, file_name, facts, licence=licence, source=source,
                taken=frozenset(view.name for view in views), base=base)
            self._engine.rescan()
            if not base:
                await self._try_placeholders(digest, file_name, emit)
            views = await self.all()
        for view in views:
            if view.digest == digest:
                await emit({"event": "added", "model": msgspec.to_builtins(view)})
                return
        raise KithError("The model was added but is not found.", hint="Run: kith doctor")

    async def _try_placeholders(self, digest: str, file_name: str, emit: Emit) -> None:
        """Keep in its record how the new model keeps placeholders best; brackets where that is not known."""
        if self._trial is None:
            return
        await emit({"event": "trying", "file": file_name, "text": "trying how it keeps placeholders"})
        verdict = await self._trial(digest)
        file = await self._file_of(digest)
        if verdict is not None and file is not None:
            record = msgspec.structs.replace(
                file.record, placeholder_style=verdict.style, trial_version=verdict.version, trial_tasks=verdict.tasks,
                well_in_brackets=verdict.brackets, well_in_surrogates=verdict.surrogates)
            await trio.to_thread.run_sync(write_record, file.path, record)
            self._engine.rescan()


def _files_of(source: str) -> tuple[bool, list[Path]]:
    """Whether it may be several, and the files meant. Raises UsageError, NoSuchPackage."""
    if source.startswith(PACKAGE):
        return True, models_of_package(source.removeprefix(PACKAGE))
    path = Path(source)
    return (True, _models_in(path)) if path.is_dir() else (False, [path])


def _models_in(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.suffix == ".gguf" and path.is_file())
    if not files:
        raise UsageError(f"There is no model in {folder}.", hint="Give a folder with files that end in .gguf")
    return files[:_FILES_LIMIT]


def _progress(emit: Emit) -> Callable[[str, int, int], Awaitable[None]]:
    async def tell(file: str, done_bytes: int, total_bytes: int) -> None:
        await emit({"event": "progress", "file": file, "done_bytes": done_bytes, "total_bytes": total_bytes})

    return tell


def _view(info: ModelInfo, *, default: bool) -> ModelView:
    return ModelView(
        name=info.name, digest=info.digest, size_bytes=info.size_bytes, context_tokens=info.context_tokens,
        quantisation=info.quantisation, licence=info.licence, loaded=info.loaded, default=default,
        placeholder_style=info.placeholder_style, broken=info.broken,
    )


def _adapter_view(info: AdapterInfo, base: str) -> ModelView:
    return ModelView(
        name=info.name, digest=info.digest, size_bytes=info.size_bytes, context_tokens=0, quantisation="LoRA",
        licence=info.licence, loaded=False, default=info.default, placeholder_style="brackets", base=base,
    )


def _fits(adapter: ModelFacts, model: ModelFacts) -> bool:
    """By what both files say. The engine looks at each tensor when the adapter is used."""
    return adapter.architecture == model.architecture and adapter.layers <= model.layers \
        and adapter.embedding_width in (0, model.embedding_width)
