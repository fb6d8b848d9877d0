"""The small agent: readers, tool choice, skills and the loop that drives them."""
