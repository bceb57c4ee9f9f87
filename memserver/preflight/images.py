"""Images of the multimodal track: inline data URLs, kept in the order of their parts. --text-only skips them."""

from __future__ import annotations

from typing import Any

from memserver.preflight.probe import QUESTION, Failed, Group, Probe, beagle, turn

# Images of one pixel, complete: any decoder reads them.
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
JPEG = (
    "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////"
    "////////////////////////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AR//Z"
)
WEBP = "data:image/webp;base64,UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
URLS = {"PNG": PNG, "JPEG": JPEG, "WebP": WEBP}
GROUP = Group("images")


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def image_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _takes(name: str, url: str) -> None:
    @GROUP.check(
        f"takes a {name} image",
        "read image_url parts with data URLs, at least their message's text; --text-only if you enter no images",
    )
    def takes(probe: Probe) -> None:
        probe.needs_images()
        user, word = probe.user(), probe.word()
        probe.store(user, turn([text_part(beagle(word)), image_part(url)]))
        probe.expect(user, word)


for _name, _url in URLS.items():
    _takes(_name, _url)


@GROUP.check(
    "returns text and images in their order", "return content as an array of parts, in the order received, images as data URLs"
)
def returns_in_order(probe: Probe) -> None:
    probe.needs_images()
    user, first, second = probe.user(), probe.word(), probe.word()
    sent = [text_part(beagle(first)), image_part(PNG), text_part(beagle(second)), image_part(JPEG), image_part(WEBP)]
    probe.store(user, turn(sent))
    probe.expect(user, first, second)
    known = [first, PNG, second, JPEG, WEBP]
    if known not in [_order(hit.get("content"), known) for hit in probe.hits(user)]:
        raise Failed("no hit has the images and the texts between them as they were sent")


def _order(content: Any, known: list[str]) -> list[str]:
    """Those of ``known`` that the parts of a content show, in their order."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    shown = [str(part.get("text") or part.get("image_url")) for part in parts]
    return [item for text in shown for item in known if item in text]


@GROUP.check("takes a query with an image", "read the text parts of a query even if you do not look at its images")
def takes_image_query(probe: Probe) -> None:
    probe.needs_images()
    user = probe.user()
    probe.expect(user, probe.remember(user), query=[text_part(QUESTION), image_part(PNG)])
