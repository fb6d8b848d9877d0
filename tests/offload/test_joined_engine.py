"""Two engines as one: who answers which name, and what is first."""

from contextlib import asynccontextmanager

from offload.joined_engine import JoinedEngine
from offload.ports import EngineHealth, Finished, GenerateRequest, ModelInfo, TextPrompt, Usage


class Fixed:
    """An engine that only says who it is."""

    def __init__(self, name, *models):
        self.name, self.names, self.default = name, models, None
        self.broken = ""

    async def models(self):
        return [
            ModelInfo(name=one, digest=f"digest of {one}", size_bytes=1, broken=self.broken) for one in self.names]

    @asynccontextmanager
    async def stream(self, request):
        async def events():
            yield Finished("stop", Usage(0, 0, 0), self.name)
        yield events()

    async def count_tokens(self, prompt, *, model=None):
        return len(self.name)

    async def embed(self, texts, *, model=None):
        return [[float(len(self.name)), float(len(text))] for text in texts]

    async def health(self):
        models = await self.models()
        first = models[0] if models else None
        return EngineHealth(
            state="ready" if first else "no_model", detail=self.name, model=first, box={"landlock": self.name})

    def set_default(self, name):
        self.default = name


async def who(engine, model=None):
    async with engine.stream(GenerateRequest(request_id="1", prompt=TextPrompt("x"), model=model)) as events:
        (last,) = [event async for event in events]
        return last.model_digest


async def test_each_name_goes_to_its_engine():
    joined = JoinedEngine(Fixed("here", "small"), Fixed("there", "big"))
    assert [one.name for one in await joined.models()] == ["small", "big"]
    asked = {name: await who(joined, name) for name in (None, "small", "big", "digest of big", "nobody's")}
    assert asked == {None: "here", "small": "here", "big": "there", "digest of big": "there", "nobody's": "here"}
    assert await joined.count_tokens(TextPrompt("x"), model="big") == len("there")
    assert (await joined.health()).detail == "here"


async def test_texts_become_vectors_on_this_device_only():
    joined = JoinedEngine(Fixed("here", "small"), Fixed("elsewhere", "big"), default_model="big")
    assert await joined.embed(["ab", "abc"]) == [[4.0, 2.0], [4.0, 3.0]]


async def test_the_owner_may_choose_the_upstream_model_as_default():
    local = Fixed("here", "small")
    joined = JoinedEngine(local, Fixed("there", "big"), default_model="big")
    assert [one.name for one in await joined.models()] == ["big", "small"]
    assert (await who(joined), (await joined.health()).detail) == ("there", "there")
    assert (await joined.health()).box == {"landlock": "here"}      # the box of the process on this device all the same
    joined.set_default("small")
    assert (await who(joined), local.default) == ("here", "small")


async def test_with_no_model_here_the_upstream_answers_and_without_upstream_the_local_one():
    joined = JoinedEngine(Fixed("here"), Fixed("there", "big"))
    assert (await who(joined), (await joined.health()).detail) == ("there", "there")
    alone = JoinedEngine(Fixed("here", "small"), None)
    assert (await who(alone), [one.name for one in await alone.models()]) == ("here", ["small"])


async def test_a_broken_model_here_leaves_the_answer_to_the_upstream():
    local = Fixed("here", "small")
    joined = JoinedEngine(local, Fixed("there", "big"), default_model="small")
    assert await who(joined) == "here"
    local.broken = "it is cut off"
    assert [one.name for one in await joined.models()] == ["big", "small"]
    assert (await who(joined), await who(joined, "small")) == ("there", "here")
