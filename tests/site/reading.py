"""What a page of the site shows, as numbers."""

from playwright.sync_api import Page


def number(text: str) -> float:
    """A number as the pages write it."""
    return float(text.replace("−", "-").replace(",", "").replace("%", ""))


def table(page: Page, figure: str) -> list[list[str]]:
    """The rows of a figure's table, which is opened where it is not."""
    button = page.locator(f"[data-figure='{figure}']")
    if button.get_attribute("aria-pressed") != "true":
        button.click()
    rows = "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    return page.eval_on_selector_all(f"figure[data-name='{figure}'] tbody tr", rows)


def slide(page: Page, name: str, value: float) -> None:
    """Moves a slider."""
    page.evaluate(
        """([id, value]) => {
            const slider = document.getElementById(id);
            slider.value = value;
            slider.dispatchEvent(new Event("input", {bubbles: true}));
        }""",
        [name, value],
    )
