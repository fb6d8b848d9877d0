"""How models write tool calls: detection from the chat template, grammars, parsers, histories."""
