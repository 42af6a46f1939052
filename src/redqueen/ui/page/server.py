"""The live page: a small server that only reads.

Every answer is read from the records when it is asked for. A browser hears of new steps through one stream, at most
once a second, and then asks for what it does not have. What leaves this process is JSON and our own files; the page
puts whatever a model wrote into text nodes, and its policy forbids scripts and requests of any other origin.
"""

import asyncio
import hmac
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from redqueen.analysis.browse import Filters, one
from redqueen.errors import InputError, UserError
from redqueen.runs.store import Store
from redqueen.ui.page import views
from redqueen.ui.page.assets import POLICY, SCRIPTS, STYLE, asset, page

LOOK_SECONDS = 1.0
"""Between two looks for new steps."""
STILL_SECONDS = 15.0
"""After so long without one the browser is told that we are still there."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the page is."""

    host: str
    port: int
    token: str
    """In the path of the address; empty where only this machine can reach it."""

    @property
    def url(self) -> str:
        # All addresses are none that a browser could ask for.
        name = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        host = f"[{name}]" if ":" in name else name
        return f"http://{host}:{self.port}/{f'{self.token}/' if self.token else ''}"


def application(folders: Sequence[Path], token: str = "", hosts: Sequence[str] = LOOPBACK) -> ASGIApp:
    """The page of these runs. With a token, nothing answers without it."""
    runs = list(folders)

    def run_of(request: Request) -> Path:
        number = _number(request, "run", 0)
        if number is None or not 0 <= number < len(runs):
            raise InputError(f"there is no run {number}", f"there are {len(runs)}")
        return runs[number]

    def view(request: Request) -> Any:
        return views.run_view(run_of(request), _number(request, "since", 0) or 0)

    def about(request: Request) -> Any:
        return views.about_view(run_of(request))

    def tasks(request: Request) -> Any:
        return views.tasks_view(run_of(request), filters(request))

    def whole(request: Request) -> Any:
        step, place = _number(request, "step", 0) or 0, _number(request, "place", 0) or 0
        with Store.read(run_of(request)) as store:
            return one(store, step, place).as_json()

    def arms(_: Request) -> Any:
        return views.arms_view(runs)

    def names(_: Request) -> Any:
        return {"runs": views.names_of(runs)}

    async def live(_: Request) -> Response:
        return StreamingResponse(_steps(runs), media_type="text/event-stream", headers=HEADERS)

    answers = {"runs": names, "run": view, "about": about, "tasks": tasks, "task": whole, "arms": arms}
    routes = [
        Route("/", lambda _: Response(page(), media_type="text/html", headers=HEADERS)),
        Route("/live", live),
        *(Route(f"/{name}.json", _answer(answer)) for name, answer in answers.items()),
        *(Route(f"/{name}", _file(name)) for name in (*SCRIPTS, STYLE)),
    ]
    if not token:
        # A page of somebody else must not reach us by a name that it made point here.
        return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts, "[::1]"])])
    # Over a network fewer bytes are worth the time that it takes to pack them.
    packed = Starlette(routes=[Mount(f"/{token}", routes=routes)], middleware=[Middleware(GZipMiddleware)])

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        given = scope.get("path", "").partition("/")[2].partition("/")[0]
        known = scope["type"] == "http" and hmac.compare_digest(given.encode(), token.encode())
        answer = packed if known else PlainTextResponse("this address lacks the page's token", 404, HEADERS)
        await answer(scope, receive, send)

    return guarded


def filters(request: Request) -> Filters:
    """Those of the task browser, as its form sends them."""
    query = request.query_params
    step, place = _number(request, "before_step"), _number(request, "before_place")
    rejected = query.get("rejected") == "1"
    return Filters(
        kind=query.get("kind") or None,
        teacher=query.get("teacher") or None,
        since=_number(request, "since"),
        until=_number(request, "until"),
        text=query.get("text") or None,
        min_rate=None if rejected else _share(request, "min_rate"),
        max_rate=None if rejected else _share(request, "max_rate"),
        oversight=query.get("oversight") == "1" and not rejected,
        rejected=rejected,
        reason=(query.get("reason") or None) if rejected else None,
        before=None if step is None or place is None else (step, place),
    )


def serve(folders: Sequence[Path], host: str, port: int, ready: Callable[[Address], None]) -> None:
    """Until it is interrupted."""
    for folder in folders:
        with Store.read(folder):
            pass  # says what is wrong before anything is opened
    bound = _bind(host, port)
    token = "" if host in LOOPBACK else secrets.token_urlsafe(24)
    address = Address(host, bound.getsockname()[1], token)
    config = uvicorn.Config(
        application(folders, token), log_level="critical", lifespan="off", timeout_graceful_shutdown=1
    )
    ready(address)
    uvicorn.Server(config).run(sockets=[bound])


async def _steps(runs: Sequence[Path]) -> AsyncIterator[str]:
    """The last step of every run and whether it is at work, whenever one has changed."""
    known: list[tuple[int, str]] | None = None
    still = 0.0
    while True:
        steps = await asyncio.to_thread(_last_steps, runs)
        if steps != known:
            known, still = steps, 0.0
            yield f"data: {json.dumps(steps)}\n\n"
        elif still >= STILL_SECONDS:
            still = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_SECONDS)
        still += LOOK_SECONDS


def _last_steps(runs: Sequence[Path]) -> list[tuple[int, str]]:
    steps = []
    for folder in runs:
        try:
            with Store.read(folder) as store:
                steps.append((store.last_step(), views.state_of(folder)))
        except UserError:  # for a moment nobody can read it, or it is gone: the page says so when it asks
            steps.append((-1, ""))
    return steps


def _answer(ask: Callable[[Request], Any]) -> Callable[[Request], Response]:
    """Not a coroutine: starlette gives each call a thread, and records belong to the thread that opened them."""

    def respond(request: Request) -> Response:
        try:
            return _json(ask(request))
        except UserError as error:
            return _json({"error": str(error)}, 400)

    return respond


def _json(answer: Any, status: int = 200) -> Response:
    """In ASCII: a model may write halves of characters, which no other encoding has."""
    text = json.dumps(answer, separators=(",", ":"), allow_nan=False)
    return Response(text, status, HEADERS, "application/json")


def _file(name: str) -> Callable[[Request], Response]:
    kind = "text/css" if name.endswith(".css") else "text/javascript"

    return lambda _: Response(asset(name), media_type=kind, headers=HEADERS)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen()
    except (OSError, OverflowError) as error:
        bound.close()
        why = getattr(error, "strerror", None) or str(error)
        mend = "--port 0 takes one that is free; --host is an address of this machine"
        raise InputError(f"port {port} of {host} cannot be used: {why}", mend) from None
    return bound


def _number(request: Request, name: str, default: int | None = None) -> int | None:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{name} cannot be {text[:20]}", "use a whole number")
    return int(text)


def _share(request: Request, name: str) -> float | None:
    text = request.query_params.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{name} cannot be {text[:20]}", "use a share from 0 to 1")
    return value
