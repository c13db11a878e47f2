"""The window, by Open3D: the only module that imports it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.errors import MissingExtraError, OutputError
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.viewer.scene import Scene, Surface

_SIZE = 1280, 960
_PATH_COLOR, _FRUSTUM_COLOR = (0.15, 0.39, 0.92), (0.88, 0.28, 0.06)
_BACKGROUND = (0.90, 0.92, 0.94)
_FRONT = (0.25, -0.3, -1.0)  # from the sphere to the eye: behind the first view, above and to the right
_RIGHT_KEY, _LEFT_KEY = 262, 263  # of GLFW
_STEP = 0.01


def show(scene: Scene, share: float = 0.0) -> None:
    """Open a window and return when it is closed; space plays, the arrow keys move the time."""
    window = _Window(scene, share)
    window.run()


def save_screenshot(scene: Scene, path: Path, share: float = 0.5) -> None:
    """Write what the window shows as a picture, without opening one; no display is needed."""
    if path.suffix.lower() not in {".png", ".jpg"}:
        raise OutputError(f"the picture {path} must end in .png or .jpg")
    _Window(scene, share, visible=False).save(path)


def _import_open3d() -> Any:
    try:
        import open3d
    except ImportError as error:
        if getattr(error, "name", None) != "open3d":
            raise OutputError(f"Open3D cannot be loaded: {error}") from error
        raise MissingExtraError(
            "the viewer needs Open3D: pip install 'cmaxslam-fbp[viewer]', or open report.html of the run in a browser"
        ) from error
    return open3d


class _Window:
    def __init__(self, scene: Scene, share: float, *, visible: bool = True) -> None:
        self._open3d = _import_open3d()
        self._open3d.utility.set_verbosity_level(self._open3d.utility.VerbosityLevel.Error)
        self._scene, self._share = scene, share
        self._playing, self._stepped = False, 0.0
        self._window = self._open3d.visualization.VisualizerWithKeyCallback()
        if not self._window.create_window("cmaxslam-fbp", *_SIZE, visible=visible):
            raise OutputError(
                "Open3D cannot open a window: no display, or no OpenGL (on Debian: apt install libegl1 libgl1); "
                "open report.html of the run in a browser instead"
            )
        self._frustum = self._mesh(scene.frustum(share), _FRUSTUM_COLOR)
        for mesh in (self._sphere(), self._mesh(scene.path, _PATH_COLOR), self._frustum):
            self._window.add_geometry(mesh)
        options = self._window.get_render_option()
        options.light_on = False
        options.mesh_show_back_face = False
        options.background_color = np.array(_BACKGROUND)
        view = self._window.get_view_control()
        view.set_lookat(np.zeros(3))
        view.set_front(np.array(_FRONT))
        view.set_up(np.array([0.0, -1.0, 0.0]))
        view.set_zoom(0.62)

    def run(self) -> None:
        self._window.register_key_callback(_RIGHT_KEY, lambda _: self._move(_STEP))
        self._window.register_key_callback(_LEFT_KEY, lambda _: self._move(-_STEP))
        self._window.register_key_callback(ord(" "), lambda _: self._toggle())
        self._window.register_animation_callback(lambda _: self._animate())
        self._window.run()
        self._window.destroy_window()

    def save(self, path: Path) -> None:
        self._window.poll_events()
        self._window.update_renderer()
        pixels = np.asarray(self._window.capture_screen_float_buffer(do_render=True))
        self._window.destroy_window()
        import cv2

        picture = np.rint(255 * np.clip(pixels[..., ::-1], 0, 1)).astype(np.uint8)
        write_file(path, cv2.imencode(path.suffix, picture)[1].tobytes())

    def _toggle(self) -> bool:
        self._playing, self._stepped = not self._playing, time.perf_counter()
        return False

    def _animate(self) -> bool:
        """Go on in the recording's own time."""
        if not self._playing:
            return False
        now = time.perf_counter()
        trajectory = self._scene.trajectory
        passed = 1e9 * (now - self._stepped) / (trajectory.end_ns - trajectory.start_ns)
        self._stepped = now
        self._playing = self._share < 1
        return self._move(passed)

    def _move(self, step: float) -> bool:
        self._share = min(max(self._share + step, 0.0), 1.0)
        moved = self._mesh(self._scene.frustum(self._share), _FRUSTUM_COLOR)
        self._frustum.vertices, self._frustum.triangles = moved.vertices, moved.triangles
        self._frustum.vertex_colors = moved.vertex_colors
        self._window.update_geometry(self._frustum)
        return True

    def _mesh(self, surface: Surface, color: tuple[float, float, float]) -> Any:
        mesh = self._open3d.geometry.TriangleMesh(
            self._open3d.utility.Vector3dVector(surface.vertices),
            self._open3d.utility.Vector3iVector(surface.triangles),
        )
        mesh.paint_uniform_color(color)
        return mesh

    def _sphere(self) -> Any:
        surface = self._scene.sphere
        mesh = self._mesh(surface, (1.0, 1.0, 1.0))
        assert surface.uvs is not None
        mesh.triangle_uvs = self._open3d.utility.Vector2dVector(surface.uvs.reshape(-1, 2))
        mesh.triangle_material_ids = self._open3d.utility.IntVector([0] * len(surface.triangles))
        mesh.textures = [self._open3d.geometry.Image(np.ascontiguousarray(self._scene.picture))]
        return mesh
