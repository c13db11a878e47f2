"""What the JSON files of a run folder may hold; what a page shows of it is checked, all else is let through."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

_LARGEST = 1e15  # beyond every figure of a run, and still a number that any page can draw

Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=round(_LARGEST))]
Stamp = Annotated[int, Field(gt=-(2**62), lt=2**62)]  # nanoseconds whose differences 64 bits hold
Vector = Annotated[list[Number], Field(min_length=3, max_length=3)]
Quaternion = Annotated[list[Number], Field(min_length=4, max_length=4)]


class Values(BaseModel):
    """The values of a JSON object."""

    model_config = ConfigDict(strict=True, extra="allow")


class Stage(Values):
    """How long a stage took."""

    seconds: Number


class RunFigures(Values):
    """`run.json`."""

    events: Count | None = None
    start_ns: Stamp | None = None
    duration_s: Annotated[float, Field(gt=0, le=1e9)] | None = None
    event_rate_ev_s: Number | None = None
    wall_s: Number | None = None
    real_time_factor: Number | None = None
    stages: dict[str, Stage] | None = None
    tracking: str | None = None
    tracking_reason: str | None = None
    unexplained_motion: Number | None = None
    windows: Count | None = None
    windows_lost: Count | None = None
    windows_by_tracking: dict[str, Count] | None = None
    evaluations_per_window: Number | None = None
    refinement_turns_deg: list[Number] | None = None
    parallax_deg: Number | None = None
    event_area: Number | None = None
    scene_distance_m: Number | None = None
    peak_memory_mb: Number | None = None
    command: list[Any] | None = None
    warnings: list[Any] | None = None


class Metrics(Values):
    """`metrics.json`."""

    absolute_best_fit_rms_deg: Number
    absolute_best_fit_median_deg: Number
    absolute_best_fit_max_deg: Number
    absolute_first_pose_rms_deg: Number
    absolute_first_pose_max_deg: Number
    time_offset_s: Number | None
    absolute_at_time_offset_rms_deg: Number | None
    relative_rms_deg_s: dict[str, Number | None]
    angular_velocity_rms_deg_s: Number
    angular_velocity_rms_per_axis_deg_s: Number
    angular_velocity_reference: str
    cmax_slam: dict[str, Number | None] | None = None


class Sensor(Values):
    """The camera."""

    width: Count
    height: Count
    fx: Number
    fy: Number


class CurveValues(Values):
    """Values over seconds."""

    t_s: Annotated[list[Number], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_a_time_for_every_value(self) -> CurveValues:
        for name in type(self).model_fields:
            values = getattr(self, name)
            if isinstance(values, list) and len(values) != len(self.t_s):
                raise ValueError(f"{len(values)} {name} at {len(self.t_s)} times")
        return self


class TruePoses(CurveValues):
    """The ground truth."""

    quaternions_xyzw: list[Quaternion]

    @model_validator(mode="after")
    def _are_rotations(self) -> TruePoses:
        if any(abs(sum(part * part for part in one) - 1) > 0.01 for one in self.quaternions_xyzw):
            raise ValueError("quaternions_xyzw are not of unit length")
        return self


class ReferenceVelocity(CurveValues):
    """Body rates to compare with."""

    source: str
    omega_rad_s: list[Vector]


class ErrorCurve(CurveValues):
    """The absolute error."""

    absolute_deg: list[Number]


class PacketFigures(Values):
    """One packet of events, before and after the warp."""

    events: Count
    duration_s: Number
    t_s: Number
    speed_deg_s: Number
    contrast_before: Number
    contrast_after: Number


class ReportData(Values):
    """`report_data.json`."""

    camera: Sensor | None = None
    field_of_view: Annotated[list[Vector], Field(min_length=4)] | None = None
    ground_truth: TruePoses | None = None
    angular_velocity: ReferenceVelocity | None = None
    errors: ErrorCurve | None = None
    packet: PacketFigures | None = None
