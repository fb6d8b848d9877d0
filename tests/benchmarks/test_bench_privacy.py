"""The measures of the privacy benchmark, on cases worked by hand: a benchmark that counts wrongly promises wrongly."""

from benchmarks.privacy_leaks import Row, count_leaks
from benchmarks.privacy_prompts import ENGLISH, LANGUAGES, make_people, make_prompts, vault_values
from benchmarks.privacy_tasks import Task, make_tasks, passes
from node.privacy.patterns import find_ibans

ROW = Row("Ann met Bo Li in Rome", ((0, 3, "PERSON"), (8, 13, "PERSON"), (17, 21, "GPE")))


def test_leaks_and_other_masked_characters_are_counted() -> None:
    found = count_leaks([ROW], [[(0, 3), (8, 10), (4, 7)]])      # Ann; the first half of Bo Li; "met"
    assert (found.values, found.leaked, found.hard_values, found.hard_leaked) == (3, 1, 2, 0)
    assert found.left == ["rome"]       # "Bo Li" can no longer be read whole
    assert (found.other_masked, found.other_chars) == (3, len(ROW.text) - 12)


def test_a_value_that_stands_twice_leaks_when_one_is_left() -> None:
    row = Row("Ann and ANN", ((0, 3, "PERSON"), (8, 11, "PERSON")))
    assert count_leaks([row], [[(0, 3)]]).leaked == 1
    assert count_leaks([row], [[(0, 3), (8, 11)]]).leaked == 0
    assert count_leaks([row], [[]]).values == 1


def test_planted_facts_stand_where_the_prompt_says() -> None:
    people = make_people(20, 1)
    others = [one for name in LANGUAGES for one in make_prompts(people, 10, 3, language=name)]
    prompts = [*make_prompts(people, 300, 2), *others]
    assert len(prompts) >= 300
    for prompt in prompts:
        assert [prompt.text[start:end] for start, end, _ in prompt.spans] == [written for written, _ in prompt.planted]
        assert prompt.planted
    assert list(make_prompts(people, 5, 2)) == prompts[:5]       # from the seed alone
    assert len(ENGLISH) >= 20
    assert len(vault_values(people)) > 100
    assert all(find_ibans(person.iban) for person in people)


def test_a_task_is_passed_by_an_answer_that_holds_all_of_it() -> None:
    task = Task("drafting", "Write to Ann Li about Friday.", ("Ann Li", "friday"), ())
    assert passes(task, "Dear ann li, on FRIDAY")
    assert not passes(task, "Dear Ann Li")
    tasks = make_tasks(make_people(40, 11), 8)
    assert len(tasks) >= 60
    assert {one.kind for one in tasks} == {"extraction", "rewriting", "drafting", "dates", "arithmetic"}
    assert all(passes(one, " ".join(one.needed)) and not passes(one, "") for one in tasks)
