"""Two dozen requests for six made-up tools, and tasks that copy or do not: what benchmarks/shortcuts.py asks for.

Must not know engines.
"""

import json
from typing import Any

__all__ = ["COPIES", "FREE", "REQUESTS", "SCHEMA", "call_prompt"]


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


def call_prompt(request: str) -> str:
    """The tools, six examples, and a request."""
    tools = "\n".join(
        json.dumps({"name": one["properties"]["name"]["const"],
                    "parameters": one["properties"]["arguments"]["properties"]}) for one in SCHEMA["anyOf"])
    shown = "".join(
        f"Request: {text}\nCall:\n{json.dumps({'name': name, 'arguments': arguments})}\n\n"
        for text, name, arguments in _SHOWN)
    return f"Tools:\n{tools}\n\n{shown}Request: {request}\nCall:\n"


_LETTER = (
    "Dear Ms Albright, thank you for your letter of the 4th of March. The pump in the cellar was replaced on the 11th, "
    "and the invoice of 640 pounds has been paid by the insurance. The wall behind it is still damp. We suggest to "
    "wait until June, to measure again, and to paint it only then. Please keep the window open where you can. The "
    "key to the meter room is with Mr Osei on the second floor. Yours, Henrik Dahl")
_CODE = (
    "def total(rows):\n    result = 0\n    for row in rows:\n        if row.active:\n            result = result + "
    "row.price * row.count\n    return result\n\n\ndef average(rows):\n    if not rows:\n        return 0\n"
    "    return total(rows) / len(rows)\n")
COPIES = (
    f"Repeat the following letter word for word.\n\n{_LETTER}",
    f"Write this letter again, but with the name Henrik Dahl replaced by Lena Frost.\n\n{_LETTER}",
    f"Rename the function total to sum_of in this code and give back all of the code.\n\n{_CODE}",
    f"Quote the sentences of this letter that speak of the wall and of the key.\n\n{_LETTER}",
    "Give back this list with the last line left out.\n\nmilk, 2 bottles\nbread, 1 loaf\neggs, 12\nflour, 3 bags\n"
    "butter, 2 packets\nrice, 5 kilograms\napples, 8\ncoffee, 1 tin\n",
)
FREE = (
    "Tell me a story about a fisherman who finds a clock in the sea.",
    "Why is the sky blue in the day and red in the evening?",
    "Give me some advice for my first week in a new job.",
)
