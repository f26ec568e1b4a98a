"""Give the history of the browser one entry for each scenario and page, so that one press of Back turns to the one before.

Streamlit adds an entry for each change of an address: where an id is added to the address that a visitor opened, and where another page
begins without parameters and takes the parameters of the scenario. These become the entry that is there.
"""

SCRIPT = """<script>
(() => {
  if (window.flopwattHistory) return;
  window.flopwattHistory = true;
  const push = history.pushState.bind(history);
  const scenario = (url) => JSON.stringify(["base", "set", "edits", "link"].map((key) => url.searchParams.getAll(key)));
  history.pushState = (state, title, address) => {
    const here = new URL(location.href), there = new URL(address ?? "", location.href);
    const taken = here.searchParams.get("view") === "mine";
    const refines = taken || here.pathname === there.pathname && (!["base", "link"].some((key) => here.searchParams.has(key)) || scenario(here) === scenario(there));
    if (refines) history.replaceState(state, title, address);
    else push(state, title, address);
  };
})();
</script>"""
