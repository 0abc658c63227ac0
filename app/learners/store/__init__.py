"""Learners in the database."""

from app.learners.store.people import (
    Enrollment,
    LearnerListRow,
    LearnerRecord,
    Records,
    add_code,
    bump_change_counter,
    change_settings,
    describe_records,
    enroll,
    find_code_owner,
    find_learner,
    in_course,
    key_in,
    learner_numbered,
    lock_learner,
    move_to_course,
    people,
    use_code,
    void_codes,
)
from app.learners.store.sessions import (
    BrowserVisit,
    begin_session,
    browsers,
    digests_of,
    revoke,
    revoke_others,
    revoke_own_session,
    rows_of,
    touch_session,
)
