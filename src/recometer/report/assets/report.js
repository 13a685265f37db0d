"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // Strings are only ever set as text, so the browser never parses data as HTML.
  const make = (tag, text, name) => {
    const one = document.createElement(tag);
    if (text !== undefined) one.textContent = text;
    if (name) one.className = name;
    return one;
  };
  const written = {
    number: (value) => value.toFixed(4),
    signed: (value) => (value > 0 ? "+" : "") + value.toFixed(4).replace("-", "\u2212"),
    count: (value) => value.toLocaleString("en"),
    share: (value) => (100 * value).toFixed(1) + "%",
    flag: (value) => (value ? "yes" : ""),
    text: (value) => String(value),
  };
  const show = (value, kind) =>
    value === null || value === undefined ? "" : written[kind](value);

  // Switch between the light and the dark theme.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (name) => {
    root.dataset.theme = name;
    byId("theme").setAttribute("aria-pressed", String(name === "dark"));
    figures.forEach((figure) => { if (figure.drawn) draw(figure); });
  };

  // Draw the charts.
  const figures = [...document.querySelectorAll("[data-chart]")].map((element) => ({
    element,
    chart: data.charts[element.dataset.chart],
    drawing: element.querySelector(".drawing"),
    selects: [...element.querySelectorAll("[data-choice]")],
    drawn: false,
    view: null,
  }));
  const rowsOf = (figure) => {
    const key = figure.selects.map((select) => select.value).join(",");
    const { columns, rows } = figure.chart;
    return (rows[key] || []).map((row) =>
      Object.fromEntries(columns.map((name, at) => [name, row[at]])));
  };
  const colours = (spec, who) => JSON.parse(JSON.stringify(spec), (name, value) =>
    name === "range" && value === "diverging3" ? who : value);
  const draw = async (figure) => {
    figure.drawn = true;
    const theme = data.themes[root.dataset.theme];
    const spec = colours(figure.chart.spec, theme.who);
    spec.data = { values: rowsOf(figure) };
    if (spec.layer) spec.layer.forEach((one) => {
      const fill = one.encoding && one.encoding.fill;
      if (fill && fill.value) fill.value = theme.accent;
    });
    if (figure.view) figure.view.finalize();
    const { view } = await vegaEmbed(figure.drawing, spec, {
      ast: true, renderer: "svg", actions: false, logLevel: 1, defaultStyle: false, config: theme.config,
      tooltip: { disableDefaultStyle: true },
    });
    figure.view = view;
    // Screen readers get the description of the chart and the table of its numbers instead.
    figure.drawing.querySelector("svg").setAttribute("aria-hidden", "true");
    figure.element.dataset.state = "drawn";
  };
  const tabulate = (figure) => {
    const place = figure.element.querySelector(".numbers .scroll");
    const table = make("table");
    const head = table.createTHead().insertRow();
    figure.chart.fields.forEach(([, title, kind]) => {
      const cell = make("th", title, kind === "text" ? "" : "number");
      cell.scope = "col";
      head.append(cell);
    });
    const body = table.createTBody();
    rowsOf(figure).forEach((row) => {
      const line = body.insertRow();
      figure.chart.fields.forEach(([name, , kind]) =>
        line.append(make("td", show(row[name], kind), kind === "text" ? "" : "number")));
    });
    place.replaceChildren(table);
  };
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    seen.unobserve(entry.target);
    const figure = figures.find((one) => one.element === entry.target);
    if (!figure.drawn) draw(figure);
  }), { rootMargin: "800px" });
  figures.forEach((figure) => {
    seen.observe(figure.element);
    const details = figure.element.querySelector(".numbers");
    details.addEventListener("toggle", () => { if (details.open) tabulate(figure); });
    figure.selects.forEach((select) => select.addEventListener("change", () => {
      draw(figure);
      if (details.open) tabulate(figure);
    }));
  });
  // Charts that are not visible yet are drawn when the browser is idle, so that they can be printed.
  const later = window.requestIdleCallback || ((then) => window.setTimeout(then, 200));
  const drawNext = () => {
    const next = figures.find((figure) => !figure.drawn);
    if (next) draw(next).then(() => later(drawNext));
  };
  window.addEventListener("load", () => later(drawNext));
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details.panel").forEach((one) => { one.open = true; });
  });
  byId("theme").addEventListener("click", () =>
    setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  setTheme(dark.matches ? "dark" : "light");

  // Sort tables by the column whose heading is clicked.
  const valueOf = (row, at) => {
    const cell = row.cells[at];
    const number = Number.parseFloat(cell.dataset.value ?? cell.textContent);
    return cell.classList.contains("number") ? number : cell.textContent.trim();
  };
  document.querySelectorAll("table.sortable").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].sort((one, other) => {
          const [a, b] = [valueOf(one, at), valueOf(other, at)];
          if (typeof a === "string") return a.localeCompare(b);
          return (Number.isNaN(a) ? Infinity : a) - (Number.isNaN(b) ? Infinity : b);
        });
        table.tBodies[0].append(...(falling ? rows.reverse() : rows));
      });
    });
  });

  // Show the lists for individual users.
  const inspector = data.inspector;
  if (!inspector) return;
  const MOST_VALUES = 6;
  let current = inspector.users[0];
  const shownModels = new Set(inspector.models.slice(0, 3));
  const nameOf = (item) => {
    const [id, title] = inspector.items[item];
    const name = make("span", title || id, "name");
    if (title) name.append(" ", make("small", id));
    return name;
  };
  const MOST_MISSED = 20;
  const valueText = (value) => (value === null ? "undefined" : value.toFixed(4));
  const line = (rank, relevant, item, score) => {
    const one = make("li", undefined, relevant ? "relevant" : "");
    const mark = make("span", relevant ? "✓" : "", "mark hit");
    mark.setAttribute("aria-hidden", "true");
    one.append(make("span", rank === null ? "–" : String(rank), "rank"), mark, nameOf(item));
    if (relevant) one.append(make("span", "relevant", "hidden"));
    one.append(make("span", score === null ? "" : score.toPrecision(4), "score"));
    return one;
  };
  const listOf = (model) => {
    const box = make("div", undefined, "list");
    box.append(make("h4", model));
    const values = make("ul", undefined, "values");
    const all = inspector.metrics.map((metric, at) => [metric, current.values[model][at]]);
    const items = all.map(([metric, value]) => {
      const one = make("li", metric + " ");
      one.append(make("b", valueText(value)));
      return one;
    });
    values.append(...items.slice(0, MOST_VALUES));
    box.append(values);
    if (items.length > MOST_VALUES) {
      const more = make("details");
      const rest = make("ul", undefined, "values");
      rest.append(...items.slice(MOST_VALUES));
      more.append(make("summary", items.length - MOST_VALUES + " more metrics"), rest);
      box.append(more);
    }
    const found = current.lists[model];
    if (!found) {
      box.append(make("p", "No list.", "muted"));
      return box;
    }
    const list = make("ol", undefined, "items");
    found.entries.forEach(([item, rank, score, relevant]) =>
      list.append(line(rank, relevant, item, score)));
    box.append(list);
    if (!found.entries.length) box.append(make("p", "The list is empty.", "muted"));
    if (found.missed.length) {
      box.append(make("h5", "Relevant, but further down or not ranked"));
      const listed = (some) => {
        const missed = make("ol", undefined, "items");
        missed.append(...some.map(([item, rank]) => line(rank, true, item, null)));
        return missed;
      };
      box.append(listed(found.missed.slice(0, MOST_MISSED)));
      const rest = found.missed.slice(MOST_MISSED);
      if (rest.length) {
        const more = make("details");
        more.append(make("summary", rest.length + " more"), listed(rest));
        box.append(more);
      }
    }
    return box;
  };
  const showUser = () => {
    const who = inspector.noun + " " + current.id + (current.title ? " · " + current.title : "");
    byId("user").textContent = who;
    const change = current.change === null ? "" :
      " · change " + written.signed(current.change) + " " + inspector.metrics[0];
    byId("about").textContent = current.kinds.join(", ") + change + " · " +
      current.n_relevant + " relevant item" + (current.n_relevant === 1 ? "" : "s");
    byId("columns").replaceChildren(
      ...inspector.models.filter((model) => shownModels.has(model)).map(listOf));
    const history = byId("history");
    history.replaceChildren();
    if (current.n_history) {
      history.append(make("h3", "Training history (" + current.n_history +
        " item" + (current.n_history === 1 ? ")" : "s)")));
      const list = make("ul");
      current.history.forEach((item) => {
        const one = make("li");
        one.append(nameOf(item));
        list.append(one);
      });
      history.append(list);
      if (current.n_history > current.history.length) history.append(
        make("p", "and " + (current.n_history - current.history.length) + " more", "muted"));
    }
    document.querySelectorAll("#userlist button").forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.id === current.id)));
  };
  const listUsers = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const kind = byId("kind").value;
    const users = inspector.users.filter((user) =>
      (!kind || user.kinds.includes(kind)) &&
      (user.id + " " + user.title).toLowerCase().includes(wanted));
    byId("found").textContent = users.length
      ? users.length + " of " + inspector.users.length + " " + inspector.noun + "s in this report"
      : "Not in this report. See above for how to include more.";
    byId("userlist").replaceChildren(...users.map((user) => {
      const entry = make("li");
      const button = make("button", user.id + (user.title ? " · " + user.title : ""));
      button.type = "button";
      button.dataset.id = user.id;
      const change = user.change === null ? "" : " " + written.signed(user.change);
      button.append(make("small", user.kinds.join(", ") + change));
      button.setAttribute("aria-pressed", String(user === current));
      button.addEventListener("click", () => { current = user; showUser(); });
      entry.append(button);
      return entry;
    }));
    if (wanted && users.length && !users.includes(current)) { current = users[0]; showUser(); }
  };
  inspector.models.forEach((model) => {
    const label = make("label");
    const box = make("input");
    box.type = "checkbox";
    box.checked = shownModels.has(model);
    box.addEventListener("change", () => {
      shownModels[box.checked ? "add" : "delete"](model);
      showUser();
    });
    label.append(box, model);
    byId("models").append(label);
  });
  byId("search").addEventListener("input", listUsers);
  byId("kind").addEventListener("change", listUsers);
  document.querySelectorAll("[data-user]").forEach((link) => link.addEventListener("click", () => {
    const found = inspector.users.find((user) => user.id === link.dataset.user);
    if (found) { current = found; showUser(); }
  }));
  listUsers();
  showUser();
})();
