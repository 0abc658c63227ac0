"""Storage of training: published sizes, Young and Daly, and what must always hold."""

import dataclasses
import doctest
import itertools
import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.estimator import verdict_changes
from app.estimator.estimates import storage_report as entry
from app.estimator.estimates.storage import StorageInputs
from app.estimator.inputs import InvalidInputsError, parse_inputs
from app.estimator.registry import run_estimate
from app.estimator.training.run_costs import first_order_goodput, young_checkpoint_interval

HOUR = 3600.0


def estimate(**changed):
    return entry.estimate(dataclasses.replace(StorageInputs(), **changed))


def found(**changed):
    """The figures of an estimate by name."""
    return {f.name: f.value for f in estimate(**changed).figures}


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(verdict_changes).failed == 0


@pytest.mark.parametrize(
    ("model", "gibibytes", "within"),
    # MLPerf Storage v2.0, submission guidelines, table 2, whose units are binary.
    [
        ("llama-3.1-8b", 105, 0.02),
        ("llama-3.1-70b", 912, 0.03),
        ("llama-3.1-405b", 5417, 0.03),
    ],
)
def test_a_checkpoint_is_as_large_as_mlperf_storage_says(model, gibibytes, within):
    assert found(model=model)["checkpoint"] == pytest.approx(gibibytes * 2**30, rel=within)


def test_bloom_weights_are_329_gibibytes():
    # BigScience, chronicles of the training: 329 GB for weights, 2.3 TB in all.
    weights = found(model="bloom-176b", content="weights")["checkpoint"]
    assert weights == pytest.approx(329 * 2**30, rel=0.01)
    assert found(model="bloom-176b")["checkpoint"] == pytest.approx(2.3 * 2**40, rel=0.1)


def test_the_data_of_llama_3_are_62_terabytes():
    # 15.6 T tokens of a vocabulary of 128,256, so 4 bytes each.
    assert found(tokens=15.6e12)["dataset"] == 62.4e12


def test_reading_text_for_16_384_gpus_is_nothing():
    # Llama 3 405B: steps of 16 M tokens in about 7 s.
    need = found(gpus=16384, gpu_rate=16e6 / 7 / 16384)["needed_read"]
    assert need == pytest.approx(9.14e6, rel=0.01)


def test_a_job_of_16_384_gpus_fails_every_three_hours():
    # Llama 3: 419 unexpected stops in 54 days are one in 50,677 hours of a GPU.
    of = found(gpus=16384, mtbf=50_677 * HOUR)
    assert of["mtbf"] == pytest.approx(54 * 86400 / 419, rel=0.001)


# 419 failures in 54 days on 16,384 GPUs.
LLAMA_3 = 50_000 * HOUR


def test_llama_3_keeps_more_than_nine_tenths_of_its_time():
    # Its report says over 90% of effective training time.
    of = found(model="llama-3.1-405b", gpus=16384, saving="beside", restart=600.0, mtbf=LLAMA_3)
    assert 0.9 < of["goodput"] < 0.97


def test_short_saves_follow_young_and_the_first_order():
    of = found(stall=1.0, mtbf=1e7 * HOUR, restart=0.0, read_bandwidth=1e15)
    mtbf = 1e7 * HOUR / 1024
    assert of["young"] == pytest.approx(young_checkpoint_interval(1.0, mtbf))
    assert of["interval"] == pytest.approx(of["young"], rel=0.01)
    assert of["goodput"] == pytest.approx(
        first_order_goodput(of["interval"], 1.0, 0.0, mtbf), rel=1e-3
    )


def test_the_wait_for_saves_and_the_failures_are_named_apart():
    # 14 B × 70.6e9 in 18 s every 30 min are 18 of 1,818 s, of which 1.7% are lost otherwise.
    typed = {"gpus": 512, "acceptable": 0.01, "save_within": 18.0, "save_every": 1800.0}
    answer = estimate(**typed)
    assert answer["waiting"].value == pytest.approx(18 / 1800 * answer["goodput"].value)
    failures = answer["waiting"].value + answer["failing"].value
    assert failures == pytest.approx(answer["lost"].value)
    assert answer.verdict.lead.replace("\u00a0", " ") == (
        "Saves stay within 1%; together with failures too much is lost."
    )
    slower = estimate(**typed, write_bandwidth=40e9)
    assert slower.verdict.lead == "Saves take too long."
    slower = estimate(**typed | {"save_within": None}, write_bandwidth=40e9)
    assert slower.verdict.lead.replace("\u00a0", " ") == (
        "Too much is lost: saves alone cost more than 1%."
    )
    text = answer.verdict.text.replace("\u00a0", " ")
    assert "waiting for saves costs 0.98%, failures 0.72%: 1.7% of the time." in text
    assert text.endswith("With 188.9 GB/s or more, waiting and failures cost at most 1% together.")
    # 16 B × 70.6e9 of training states do not fit on 7 GPUs.
    assert "gpus" not in [change.field for change in answer.changes]


def test_a_restart_takes_the_same_time_wherever_it_is_shown():
    steps = {
        step.output_name: step.substituted
        for step in estimate(gpus=512, duration=60 * 86400.0).steps
    }
    restart = "10.082\u00a0min"
    assert f"exp({restart} ÷ " in steps["goodput"]
    assert f"exp(−{restart} ÷ " in steps["time_restarting"]


@pytest.mark.parametrize("every", [None, 1800.0])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.15])
def test_at_the_bandwidth_named_for_it_waiting_costs_the_acceptable_share(share, every):
    typed = {"acceptable": share, "save_every": every}
    rate = found(**typed)["needed_wait"]
    assert found(**typed, write_bandwidth=rate)["waiting"] == pytest.approx(share, rel=1e-4)
    assert found(**typed, saving="beside")["needed_wait"] is None


def test_a_running_time_tells_the_failures_and_lost_hours_of_a_run():
    # 512 GPUs, 30,000 h each: 24.6 failures in 60 days of 1,440 h.
    of = found(gpus=512, duration=60 * 86400.0)
    assert of["failures"] == pytest.approx(512 * 1440 / 30_000)
    assert of["no_failure"] == pytest.approx(math.exp(-24.576))
    lost = of["time_waiting"] + of["time_redone"] + of["time_restarting"]
    assert lost == pytest.approx(60 * 86400 * of["lost"])
    text = estimate(gpus=512, duration=60 * 86400.0).verdict.text.replace("\u00a0", " ")
    assert "In 60 days expect 24.6 failures. The chance of none is less than 0.1%;" in text
    assert estimate()["failures"].value is None


def test_a_run_loses_the_same_in_storage_and_in_training_time():
    run = run_estimate("training-time", {"gpus": 512, "checkpoint_time": 20})
    duration = run["time"].value
    of = found(gpus=512, stall=20.0, read_bandwidth=1e15, duration=duration)
    assert of["failures"] == pytest.approx(run["failures"].value)
    by_label = {step.label: step.value for step in run.steps}
    labels = (
        "Time lost to saving checkpoints",
        "Lost work, done again since the last checkpoint",
        "Time lost to restarts",
    )
    lost = [of["time_waiting"], of["time_redone"], of["time_restarting"]]
    assert lost == pytest.approx([by_label[label] for label in labels], rel=1e-4)


def simulate_losses(gpus, interval, stall, write, restart, failures=10_000):
    """Lost share of the time, and work done twice per failure [s], in a drawn run."""
    mtbf = 30_000 * HOUR / gpus
    draw = random.Random(f"{gpus} {interval} {write}").expovariate  # noqa: S311 - repeatable, not secret
    passed = kept = redone = 0.0
    for _ in range(failures):
        failure = draw(1 / mtbf)
        passed += failure
        running = failure - restart
        if running <= 0:  # The failure ends the restart.
            continue
        # Times since the restart, and the work done until then.
        written = copied = work = usable = stalls = 0.0
        while copied < running:
            begins = max(copied + interval, written)
            work += begins - copied
            copied = begins + stall
            written = copied + write
            if written <= running:
                usable, stalls = work, stalls + stall
        kept += usable
        redone += running - usable - stalls
    return 1 - kept / passed, redone / failures


@pytest.mark.parametrize(
    ("gpus", "bandwidth", "every"),
    [
        (512, 344.8e6, 1800.0),  # a write of 47.7 min, longer than the interval
        (512, 48.8e6, None),  # of 5.6 h
        (512, 2.03e9, 1800.0),
        (4096, 2e9, None),
        (4096, 2e9, 3 * HOUR),
    ],
)
def test_saves_beside_the_training_lose_what_a_simulation_of_their_writes_loses(
    gpus, bandwidth, every
):
    of = found(
        gpus=gpus, saving="beside", write_bandwidth=bandwidth, save_every=every, duration=60 * 86400
    )
    restart = 600.0 + of["restart_read"]
    typed = every or of["interval"]
    lost, redone = simulate_losses(gpus, typed, of["stall"], of["write_time"], restart)
    assert of["lost"] == pytest.approx(lost, rel=0.04)
    assert of["time_redone"] / of["failures"] == pytest.approx(redone, rel=0.04)


def test_a_failure_loses_half_an_interval_and_the_write_beside_the_training():
    typed = {"gpus": 512, "saving": "beside", "duration": 60 * 86400.0, "mtbf": 1e6 * HOUR}
    of = found(**typed, write_bandwidth=344.8e6, save_every=1800.0)
    assert of["write_time"] == pytest.approx(47.7 * 60, rel=0.001)
    assert of["time_redone"] / of["failures"] == pytest.approx(1.5 * of["write_time"], rel=0.01)


@pytest.mark.parametrize("every", [None, 1800.0])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.15])
def test_at_the_bandwidth_named_for_it_saves_beside_lose_the_acceptable_share(share, every):
    typed = {"gpus": 512, "saving": "beside", "acceptable": share, "save_every": every}
    rate = found(**typed)["needed_write"]
    at_rate = found(**typed, write_bandwidth=rate)
    if every and at_rate["write_time"] == pytest.approx(every):
        # A slower write would lose no more, but then the interval can't be kept.
        assert at_rate["lost"] < share
    else:
        assert at_rate["lost"] == pytest.approx(share, rel=1e-6)


def test_one_percent_with_saves_every_30_minutes_needs_two_gigabytes_per_second():
    # 0.0101 = (1.1 s ÷ 30 min) + (15 min + 605 s + 502 s) ÷ 58.6 h; 988 GB in about 500 s.
    typed = {"gpus": 512, "saving": "beside", "acceptable": 0.01, "save_every": 1800.0}
    assert found(**typed)["needed_write"] == pytest.approx(2e9, rel=0.02)


def plain(text):
    return text.replace("\u00a0", " ")


def test_an_interval_shorter_than_the_write_beside_the_training_is_called_impossible():
    # 14 B × 70.6e9 at 0.5 GB/s are 1,975.5 s, at 548.8 MB/s half an hour.
    typed = {"gpus": 512, "saving": "beside", "save_every": 1800.0}
    slow = estimate(**typed, write_bandwidth=0.5e9)
    assert (slow.verdict.status, slow["fits"].value) == ("no", False)
    assert slow.verdict.lead == "Saves take too long."
    assert plain(slow.verdict.text).startswith(
        "A checkpoint of 987.8 GB takes 32.9 min to write. The next save waits until then, so "
        "every 30 min can't be kept: every 32.9 min is the shortest, and 1.73% of the time is lost. "
        "Saves every 30 min need 548.8 MB/s or more."
    )
    assert slow["interval"].value == pytest.approx(1975.5, rel=1e-4)
    (every, rate) = slow.changes
    assert (every.current_value, every.new_value) == ("30 min", "33 min")
    assert (rate.current_value, rate.new_value) == ("0.5 GB/s", "0.549 GB/s")
    within_1 = plain(estimate(**typed, write_bandwidth=0.5e9, acceptable=0.01).verdict.text)
    assert within_1.endswith("need 548.8 MB/s or more, and 2 GB/s to lose at most 1%.")
    large = typed | {"gpus": 1024, "acceptable": 0.01}
    never = plain(estimate(**large, write_bandwidth=0.5e9).verdict.text)
    assert never.endswith("548.8 MB/s or more; no bandwidth keeps the loss within 1%.")
    # A bandwidth that barely writes in time is enough, and below it saves take too long.
    kept = estimate(**typed, write_bandwidth=0.7e9)
    assert kept["fits"].value is True
    assert kept.find_verdict_change("write_bandwidth").verdict_after == "Saves take too long."
    # Training that waits can save as often as it likes.
    assert found(**typed | {"saving": "wait"}, write_bandwidth=10e9)["interval"] == 1800.0


def test_no_interval_is_listed_that_is_shorter_than_the_write_beside_the_training():
    for typed in (
        {"gpus": 1024, "acceptable": 0.01, "save_every": 1800.0, "write_bandwidth": 0.3448e9},
        {"gpus": 512, "save_within": 1500.0},
    ):
        answer = estimate(saving="beside", **typed)
        table = next(t for t in answer.tables if t.label == "What another interval costs")
        labels = [row[0] for row in table.rows]
        assert labels == ["The shortest possible", "Twice as long", "Four times as long"]
        losses = [row[2][0] for row in table.rows]
        assert losses == sorted(losses)
        line = next(x for x in answer.pictures[0].lines if x.label == "Lost")
        assert min(x for x, _ in line.points) == answer["write_time"].value
        assert "The shortest possible" in [x.label for x in answer.pictures[0].lines]


def test_a_save_that_may_take_the_time_between_saves_keeps_it():
    answer = estimate(saving="beside", save_within=1800.0, save_every=1800.0, gpus=512)
    assert answer["fits"].value is True


@pytest.mark.parametrize("saving", ["wait", "beside"])
def test_changes_turn_the_verdict_whatever_saves_may_take(saving):
    choices = (
        ("1%", "5%", "20%"),
        ("60 s", "1800 s", "7200 s", ""),
        ("300 s", "1500 s", "9000 s", ""),
        ("0.06 GB/s", "0.3 GB/s", "0.6 GB/s", "5 GB/s", ""),
    )
    for values in itertools.product(*choices):
        fields = ("acceptable", "save_every", "save_within", "write_bandwidth")
        words = {"gpus": "512", "saving": saving, **dict(zip(fields, values, strict=True))}
        answer = entry.estimate(parse_inputs(StorageInputs, words))
        for change in answer.changes:
            turned = entry.estimate(
                parse_inputs(StorageInputs, words | change.typed_values_by_field)
            )
            assert turned["fits"].value is not answer["fits"].value, (values, change)
            if change.verdict_after == "Saves take too long.":
                assert turned.verdict.lead == change.verdict_after, (values, change)


def test_images_can_starve_gpus():
    answer = estimate(bytes_per_token=1e6)
    assert answer.verdict.status == "no"
    assert answer.verdict.lead == "The GPUs starve."
    assert answer["fits"].value is False


def test_the_verdict_says_how_often_to_save():
    verdict = estimate().verdict
    assert verdict.lead.startswith("Save every 23.9")
    assert "of the time" in verdict.text


def test_failures_that_are_given_leave_no_interval():
    assert estimate(mtbf=50_000 * HOUR)["interval"].is_exact
    modeled = estimate()["interval"]
    assert modeled.low < modeled.value < modeled.high


def test_a_job_that_cannot_progress_is_refused():
    with pytest.raises(InvalidInputsError, match="makes no progress"):
        estimate(gpus=1_000_000, mtbf=HOUR, restart=86400.0)


@given(st.integers(1, 100_000), st.sampled_from(["wait", "beside"]))
def test_more_gpus_never_lose_less_of_the_time(gpus, saving):
    few, more = (found(gpus=n, saving=saving)["lost"] for n in (gpus, gpus * 2))
    assert more >= few


@given(st.floats(1e9, 1e13), st.sampled_from(["wait", "beside"]))
def test_more_bandwidth_never_loses_more_of_the_time(write, saving):
    slow, fast = (found(write_bandwidth=w, saving=saving)["lost"] for w in (write, write * 2))
    assert fast <= slow + 1e-12


@given(st.integers(64, 50_000))
def test_no_other_interval_loses_less(gpus):
    answer = estimate(gpus=gpus)
    line = next(x for x in answer.pictures[0].lines if x.label == "Lost")
    assert all(lost >= answer["lost"].value - 1e-4 for _, lost in line.points)


@given(st.integers(16, 50_000), st.sampled_from(["wait", "beside"]))
@example(15_002, "wait")  # where the loss hardly depends on the bandwidth
def test_the_changes_turn_the_verdict(gpus, saving):
    answer = estimate(gpus=gpus, saving=saving)
    for change in answer.changes:
        words = {"gpus": str(gpus), "saving": saving, **change.typed_values_by_field}
        turned = entry.estimate(parse_inputs(StorageInputs, words))
        assert turned["fits"].value is not answer["fits"].value, change


@pytest.mark.parametrize("saving", ["wait", "beside"])
@pytest.mark.parametrize("minutes", [1, 5, 30, 120, 600, None])
def test_a_time_between_saves_is_named_where_it_turns_the_verdict(minutes, saving):
    every = None if minutes is None else minutes * 60.0
    typed = {"saving": saving, "gpus": 4096, "save_every": every, "acceptable": 0.1}
    answer = estimate(**typed)
    (change,) = (change for change in answer.changes if change.field == "save_every")
    turned = 60 * float(change.new_value.removesuffix(" min").replace(",", ""))
    fits, lost = found(**typed)["fits"], found(**typed | {"save_every": turned})["lost"]
    assert found(**typed | {"save_every": turned})["fits"] != fits
    assert lost == pytest.approx(0.1, rel=0.02)
    # A given time that loses too much is the first to be changed.
    assert fits or answer.changes[0] == change


def test_a_restart_that_decides_is_named_before_fewer_gpus():
    # Llama 3 405B: 419 failures in 54 days on 16,384 GPUs, three hours between them.
    answer = estimate(model="llama-3.1-405b", gpus=16_384, saving="beside", mtbf=LLAMA_3)
    assert answer.verdict.status == "no"
    assert [c.field for c in answer.changes] == ["restart", "gpus"]
    # By the first order: 5% of 10,986 s between failures are 549 s; 1.36% of them go
    # into saves of a second every 150 s and work done twice, 28 s into reading, and 57 s
    # into the work during a write.
    minutes = float(answer.changes[0].new_value.removesuffix(" min"))
    assert minutes == pytest.approx((549 - 0.0136 * 10_986 - 28 - 57) / 60, rel=0.06)
    assert "Restarts alone cost 5.6%, more than the 5%" in answer.verdict.text


def test_where_saving_and_restarting_are_both_too_much_both_are_said():
    answer = estimate(model="llama-3.1-405b", gpus=16_384, mtbf=LLAMA_3)
    assert answer.verdict.text.endswith(
        "Restarts alone cost 5.6%, more than the 5% that are acceptable: "
        "with saves beside the training, a restart within 5.5\u00a0min would do."
    )
    pair, gpus = answer.changes
    assert (pair.field, pair.verdict_after, gpus.field) == ("saving", "Tight, but fits.", "gpus")
    assert pair.new_values_text == "Training goes on, restart 5.47 min"
    words = {
        "model": "llama-3.1-405b",
        "gpus": "16384",
        "mtbf": LLAMA_3,
        **pair.typed_values_by_field,
    }
    assert entry.estimate(parse_inputs(StorageInputs, words))["fits"].value is True


def test_saves_that_decide_are_moved_beside_the_training_first():
    answer = estimate(model="llama-3.1-405b", gpus=4096)
    assert answer.verdict.status == "no"
    assert answer.changes[0].field == "saving"


def test_capacity_holds_what_is_kept():
    of = found(fill=1.0, kept=3, copies=4)
    assert of["fast"] == of["dataset"] + 3 * of["checkpoint"]
    assert of["bulk"] == 3 * of["dataset"] + of["checkpoint"]
