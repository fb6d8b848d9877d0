"""Two dozen requests for six made-up tools, and tasks that copy or do not: what benchmarks/shortcuts.py asks for.

Must not know engines.
"""

import json
from typing import Any

__all__ = ["COPIES", "FREE", "REQUESTS", "SCHEMA", "call_prompt", "schema_for"]


def _tool(name: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    arguments = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "object", "required": ["name", "arguments"],
        "properties": {"name": {"const": name}, "arguments": arguments},
    }


_WORDS = {"type": "string", "minLength": 1, "maxLength": 40}
SCHEMA = {"anyOf": [
    _tool("get_weather", {"city": _WORDS, "unit": {"enum": ["celsius", "fahrenheit"]}}, "city", "unit"),
    _tool("create_event", {"title": _WORDS, "day": _WORDS, "hour": {"type": "integer", "minimum": 0, "maximum": 23}},
          "title", "day", "hour"),
    _tool("send_message", {"recipient": _WORDS, "text": {"type": "string", "minLength": 1, "maxLength": 80}},
          "recipient", "text"),
    _tool("search_notes", {"query": _WORDS, "limit": {"type": "integer", "minimum": 1, "maximum": 50}}, "query"),
    _tool("set_timer", {"minutes": {"type": "number", "minimum": 0, "maximum": 600}, "label": _WORDS}, "minutes"),
    _tool("switch_light", {"room": _WORDS, "on": {"type": "boolean"}}, "room", "on"),
]}

_SHOWN = (
    ("How warm is it in Oslo today, in celsius?", "get_weather", {"city": "Oslo", "unit": "celsius"}),
    ("Put dentist into Monday at 9", "create_event", {"title": "dentist", "day": "Monday", "hour": 9}),
    ("Write to Ben that I am at the gate", "send_message", {"recipient": "Ben", "text": "I am at the gate"}),
    ("Show me 5 notes about the boiler", "search_notes", {"query": "boiler", "limit": 5}),
    ("Wake me in 12 minutes", "set_timer", {"minutes": 12}),
    ("It is too bright in the kitchen", "switch_light", {"room": "kitchen", "on": False}),
)
# four for each tool, in the order of SCHEMA
REQUESTS = (
    "What is the weather in Lisbon in celsius?", "Is it cold in Denver? Tell me in fahrenheit.",
    "Weather for Nairobi please, celsius", "How hot is Phoenix right now in fahrenheit?",
    "Add swimming to Tuesday at 17", "Plan lunch with Ida on Friday at 12", "Enter choir practice on Sunday at 19",
    "Note a haircut for Thursday at 10", "Tell Nora that dinner is ready", "Message Paul: the parcel has come",
    "Let Greta know that the train is late", "Write to Sam that we meet at the fountain",
    "Find notes about the garden", "Search my notes for tax, 3 of them", "Look for the recipe for bread in my notes",
    "Show 10 notes on the trip to Wales", "Set a timer for 25 minutes", "Timer of 7 minutes for the eggs",
    "Count down 90 minutes", "Remind me in 4 minutes about the tea", "Turn on the light in the hall",
    "Switch off the bedroom light", "Lights off in the garage please", "Make it bright in the study",
)


def schema_for(request: str) -> dict[str, Any]:
    """The one tool that the request is for, as when something else has chosen it."""
    return SCHEMA["anyOf"][REQUESTS.index(request) * len(SCHEMA["anyOf"]) // len(REQUESTS)]


def call_prompt(request: str) -> str:
    """The tools, six examples, and a request."""
    tools = "\n".join(
        json.dumps({"name": one["properties"]["name"]["const"],
                    "parameters": one["properties"]["arguments"]["properties"]}) for one in SCHEMA["anyOf"])
    shown = "".join(
        f"Request: {text}\nCall:\n{json.dumps({'name': name, 'arguments': arguments})}\n\n"
        for text, name, arguments in _SHOWN)
    return f"Tools:\n{tools}\n\n{shown}Request: {request}\nCall:\n"


_NOTE = (
    "The boiler in the cellar was repaired on Monday. Anna has the key to the shed, and Peter has the key to the gate. "
    "The bins go out on Thursday evening. Please water the tomatoes twice a day while it is hot, and close the windows "
    "when it rains.")
_CODE = (
    "def total(rows):\n    result = 0\n    for row in rows:\n        if row.active:\n            result = result + "
    "row.price * row.count\n    return result\n")
COPIES = (
    f"Repeat this text exactly:\n\n{_NOTE}",
    "Fix the spelling mistakes in this text and give back the whole text:\n\n"
    + _NOTE.replace("evening", "evenning").replace("tomatoes", "tomatos"),
    f"Copy this text, but write Maria in the place of Anna:\n\n{_NOTE}",
    f"Add a short greeting in front of this message and keep the rest as it is:\n\n{_NOTE}",
    f"Add a docstring to this function and give back the whole code:\n\n```python\n{_CODE}```",
)
FREE = (
    "Tell me a story about a fisherman who finds a clock in the sea.",
    "Why is the sky blue in the day and red in the evening?",
    "Give me some advice for my first week in a new job.",
)
