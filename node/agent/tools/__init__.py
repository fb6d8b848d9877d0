"""The tools of the agent, one small file per family; registry.py holds the contract."""
