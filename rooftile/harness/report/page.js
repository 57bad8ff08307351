// Draws the charts from the JSON block. The tables beside them were written with the page and need none of this.
"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const kMarks = ["circle", "triangle", "rect", "rectRot", "star", "crossRot", "rectRounded"];
  const kDashes = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4]];
  const kTypeColours = 6, kKernelColours = 18;

  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const type_colour = (i) => colour("c" + (i % kTypeColours));
  const kernel_colour = (look) => colour("k" + look.colour);
  const mark = (look) => kMarks[look.mark % kMarks.length];
  const narrow = () => window.innerWidth < 640;
  const log = Math.log2;

  function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    for (; n >= 1024 && i < 4; ++i) n /= 1024;
    return Math.round(n * 100) / 100 + " " + units[i];
  }

  // 1, 2, 5, 10, … or whole powers of ten where the range is wide.
  function decades(low, high) {
    const steps = log(high / low) > 12 ? [1] : [1, 2, 5];
    const out = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
      for (const s of steps) out.push(Number((s * 10 ** e).toPrecision(3)));
    return out.filter((v) => v >= low && v <= high);
  }

  function powers(low, high, step) {
    const out = [];
    for (let e = Math.ceil(log(low)); e <= log(high); ++e) if (e % step === 0) out.push(2 ** e);
    return out;
  }

  const plain = (v) => (v >= 1e-4 ? String(v) : v.toExponential());
  const fraction = (v) => (v >= 1 ? String(v) : "1/" + Math.round(1 / v));

  function log_axis(title, min, max, ticks, label) {
    return {
      type: "logarithmic", min, max,
      title: { display: true, text: title, color: colour("soft") },
      afterBuildTicks: (axis) => { axis.ticks = ticks.map((value) => ({ value })); },
      ticks: { callback: (value) => label(value), color: colour("soft"), autoSkip: false, maxRotation: 0 },
      grid: { color: colour("grid"), borderColor: colour("line"), tickLength: 4 },
    };
  }

  // Text on the chart itself, beside what it names, with a rim of paper around the letters. Labels that would cover
  // one already written move along their line, and are left out where there is no room. They lie under the marks.
  const labels_plugin = {
    id: "labels",
    beforeDatasetsDraw(chart, _args, options) {
      const { ctx, chartArea: area, scales } = chart;
      const taken = [];
      ctx.save();
      ctx.font = (narrow() ? "11px " : "12px ") + Chart.defaults.font.family;
      ctx.lineJoin = "round";
      for (const label of options.list || []) {
        const width = ctx.measureText(label.text).width;
        const place = label.place({ area, scales, width, taken });
        if (!place) continue;
        taken.push(place.box);
        ctx.save();
        ctx.translate(place.x, place.y);
        ctx.rotate(place.angle || 0);
        ctx.textAlign = place.align || "left";
        ctx.textBaseline = "bottom";
        ctx.lineWidth = 4;
        ctx.strokeStyle = colour("paper");
        ctx.strokeText(label.text, 0, 0);
        ctx.fillStyle = colour("ink");
        ctx.fillText(label.text, 0, 0);
        ctx.restore();
      }
      ctx.restore();
    },
  };

  const free = (box, taken) =>
    !taken.some((t) => box.x < t.x + t.w && t.x < box.x + box.w && box.y < t.y + t.h && t.y < box.y + box.h);

  // Above a level line, at its right end; below it where above is taken.
  const at_right = (y_value) => ({ area, scales, width, taken }) => {
    const y = scales.y.getPixelForValue(y_value);
    for (const shift of [-2, 16]) {
      const box = { x: area.right - width - 6, y: y + shift - 13, w: width + 6, h: 14 };
      if (box.y > area.top - 14 && box.y + box.h < area.bottom && free(box, taken))
        return { x: area.right - 4, y: y + shift, align: "right", box };
    }
    return null;
  };

  // Along a slanting line y = slope * x, from where it enters the chart.
  const along = (slope) => ({ area, scales, width, taken }) => {
    const px = (x) => ({ x: scales.x.getPixelForValue(x), y: scales.y.getPixelForValue(x * slope) });
    const start = px(Math.max(scales.x.min, scales.y.min / slope));
    const far = px(scales.x.max);
    const angle = Math.atan2(far.y - start.y, far.x - start.x);
    for (let at = 8; at < 260; at += 12) {
      const x = start.x + at * Math.cos(angle), y = start.y + at * Math.sin(angle);
      const w = width * Math.cos(angle), h = -width * Math.sin(angle);
      const box = { x, y: y - h - 12, w: w + 4, h: h + 12 };
      // Parallel slanting texts may share a rectangle; their distance across the lines counts.
      const clear = !taken.some((t) => t.slope && Math.abs(log(t.slope / slope)) < 0.7 && x < t.x + t.w);
      if (x + w < area.right && y - h > area.top && clear)
        return { x: x + 4 * Math.sin(angle), y: y - 4 * Math.cos(angle), angle, box: { ...box, slope } };
    }
    return null;
  };

  const upright_plugin = {
    id: "upright",
    beforeDatasetsDraw(chart, _args, options) {
      const { ctx, chartArea: area, scales } = chart;
      ctx.save();
      ctx.strokeStyle = colour("soft");
      ctx.setLineDash([3, 3]);
      for (const value of options.list || []) {
        const x = scales.x.getPixelForValue(value);
        if (x < area.left || x > area.right) continue;
        ctx.beginPath();
        ctx.moveTo(x, area.top);
        ctx.lineTo(x, area.bottom);
        ctx.stroke();
      }
      ctx.restore();
    },
  };

  const at_top = (x_value) => ({ area, scales, width, taken }) => {
    const x = scales.x.getPixelForValue(x_value);
    if (x < area.left || x > area.right) return null;
    for (const row of [0, 1, 2]) {
      const left = x + width + 8 > area.right ? x - width - 4 : x + 4;
      const box = { x: left, y: area.top + row * 15, w: width, h: 14 };
      if (free(box, taken)) return { x: left, y: area.top + 15 + row * 15, box };
    }
    return null;
  };

  // The one point nearest to the pointer, if it is near: several in one box would be a wall of text.
  const kNear = 40;
  function nearest_point(chart, event) {
    let found = null, least = kNear * kNear;
    for (const meta of chart.getSortedVisibleDatasetMetas())
      meta.data.forEach((element, index) => {
        const raw = chart.data.datasets[meta.index].data[index];
        if (!raw || raw.title === undefined) return;
        const distance = (element.x - event.x) ** 2 + (element.y - event.y) ** 2;
        if (distance < least) { least = distance; found = { element, datasetIndex: meta.index, index }; }
      });
    return found ? [found] : [];
  }

  const tooltip = {
    displayColors: false, padding: 10, caretPadding: 8,
    callbacks: { title: (items) => (items.length ? items[0].raw.title : ""), label: (item) => item.raw.lines },
  };

  function legend(keep) {
    return {
      position: "bottom", align: "start",
      labels: { usePointStyle: true, color: colour("ink"), padding: 14, boxWidth: 9, boxHeight: 7, filter: keep, sort: null },
    };
  }

  const span = (values) => [Math.min(...values), Math.max(...values)];
  const line = (points, more) => ({
    type: "line", data: points, showLine: true, pointRadius: 0, pointHitRadius: 0, pointHoverRadius: 0, borderWidth: 1.5,
    roof: true, ...more,
  });

  // The same threads' roofs and marks: two threads' marks under one thread's roof would say nothing.
  const of_threads = (list, threads) => list.filter((one) => one.threads === threads);

  function roofline(index) {
    const { points, threads } = data.roofline.views[index];
    const levels = of_threads(data.roofline.levels, threads).sort((a, b) => b.gbs - a.gbs);
    const peaks = of_threads(data.roofline.peaks, threads).sort((a, b) => b.gflops - a.gflops);
    const top = peaks.length ? peaks[0].gflops : 0;
    let [x_low, x_high] = span(points.map((p) => p.x));
    let [y_low, y_high] = span(points.map((p) => p.y));
    if (top && levels.length) x_high = Math.max(x_high, (top / levels[levels.length - 1].gbs) * 2);
    x_low = 2 ** Math.floor(log(x_low) - 1.2);
    x_high = 2 ** Math.ceil(log(x_high) + 0.6);
    y_low /= 2.5;
    y_high = Math.max(y_high, top) * 2;
    const datasets = points.map((p) => ({
      label: p.series, data: [p], pointStyle: mark(p.look), borderColor: kernel_colour(p.look),
      backgroundColor: kernel_colour(p.look) + "cc", pointBorderWidth: 1.5, pointRadius: narrow() ? 5 : 6,
      pointHoverRadius: 8, order: 0,
    }));
    const list = [];
    levels.forEach((level, i) => {
      const end = top ? top / level.gbs : x_high;
      const last = Math.min(end, x_high);
      datasets.push(line([{ x: x_low, y: x_low * level.gbs }, { x: last, y: last * level.gbs }],
        { borderColor: colour("soft"), borderDash: kDashes[i % kDashes.length], order: 1 }));
      list.push({ text: level.label, place: along(level.gbs) });
    });
    for (const peak of peaks) {
      const from = levels.length ? Math.max(peak.gflops / levels[0].gbs, x_low) : x_low;
      datasets.push(line([{ x: from, y: peak.gflops }, { x: x_high, y: peak.gflops }],
        { borderColor: colour("soft"), borderDash: peak === peaks[0] ? [] : [4, 4], order: 1 }));
      // The axis names the unit, and a phone has no room for it twice.
      list.push({ text: narrow() ? peak.label.replace(" GFLOP/s", "") : peak.label, place: at_right(peak.gflops) });
    }
    return {
      type: "scatter", data: { datasets },
      options: {
        scales: {
          x: log_axis("flops per byte moved", x_low, x_high, powers(x_low, x_high, narrow() ? 2 : 1), fraction),
          y: log_axis("GFLOP/s", y_low, y_high, decades(y_low, y_high), plain),
        },
        interaction: { mode: "nearest_point" },
        plugins: { tooltip, legend: legend((item, chart) => !chart.datasets[item.datasetIndex].roof), labels: { list } },
      },
    };
  }

  function speed(threads) {
    const series = of_threads(data.speed.series, threads);
    const levels = of_threads(data.speed.levels, threads).sort((a, b) => b.gbs - a.gbs);
    const all = series.flatMap((s) => s.points);
    let [x_low, x_high] = span(all.map((p) => p.x));
    let [y_low, y_high] = span([...all.map((p) => p.y), ...levels.map((l) => l.gbs)]);
    x_low /= 1.5;
    x_high *= 1.5;
    y_low /= 1.6;
    y_high *= 1.9;
    const names = [...new Set(data.speed.series.map((s) => s.name))];
    const datasets = series.map((one) => {
      const i = names.indexOf(one.name);
      return {
        label: one.name, data: one.points, type: "line", pointStyle: mark(one.look), borderColor: kernel_colour(one.look),
        backgroundColor: kernel_colour(one.look), borderWidth: 2, borderDash: kDashes[i % kDashes.length], pointRadius: 4,
        pointHoverRadius: 7, order: 0,
      };
    });
    for (const level of levels)
      datasets.push(line([{ x: x_low, y: level.gbs }, { x: x_high, y: level.gbs }],
        { borderColor: colour("soft"), borderDash: [1, 4], order: 1 }));
    return {
      type: "scatter", data: { datasets },
      options: {
        scales: {
          x: log_axis("bytes moved by one call", x_low, x_high, powers(x_low, x_high, narrow() ? 6 : 2), bytes),
          y: log_axis("GB/s", y_low, y_high, decades(y_low, y_high), plain),
        },
        interaction: { mode: "nearest_point" },
        plugins: {
          tooltip, legend: legend((item, chart) => !chart.datasets[item.datasetIndex].roof),
          upright: { list: data.speed.caches.map((c) => c.bytes) },
          labels: {
            list: [
              ...data.speed.caches.map((c) => ({ text: c.label, place: at_top(c.bytes) })),
              ...levels.map((l) => ({ text: l.label, place: at_right(l.gbs) })),
            ],
          },
        },
      },
    };
  }

  // Stripes, dots and the like, so that bars of two types differ in print and to every eye.
  function pattern(ctx, i) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const c = tile.getContext("2d");
    c.fillStyle = c.strokeStyle = type_colour(i);
    c.lineWidth = 2;
    const kind = i % 5;
    if (kind === 0) c.fillRect(0, 0, 8, 8);
    if (kind === 1) for (const s of [-8, 0, 8]) { c.moveTo(s, 8); c.lineTo(s + 8, 0); }
    if (kind === 2) { c.fillRect(1, 1, 3, 3); c.fillRect(5, 5, 3, 3); }
    if (kind === 3) { c.fillRect(0, 1, 8, 2); c.fillRect(0, 5, 8, 2); }
    if (kind === 4) { c.fillRect(1, 0, 2, 8); c.fillRect(5, 0, 2, 8); }
    c.stroke();
    return ctx.createPattern(tile, "repeat");
  }

  function ulp(group, canvas) {
    const chosen = data.ulp.groups[group];
    const ctx = canvas.getContext("2d");
    const shares = chosen.series.flatMap((s) => s.shares).filter((v) => v > 0);
    const low = 10 ** Math.floor(Math.log10(Math.min(1, ...shares)) - 0.01);
    // Only as far as there are errors; and where many dtypes in many bins leave less than two pixels for a bar (a
    // phone), bars of two and a half that overlap.
    const bins = 1 + Math.max(0, ...chosen.series.map((s) => s.shares.findLastIndex((v) => v > 0)));
    const thin = canvas.parentElement.clientWidth - 60 < 2.5 * bins * chosen.series.length;
    return {
      type: "bar",
      data: {
        labels: data.ulp.labels.slice(0, bins),
        datasets: chosen.series.map((s) => ({
          label: s.name, data: s.shares.slice(0, bins).map((v) => (v > 0 ? v : null)), texts: s.texts,
          backgroundColor: pattern(ctx, s.place), borderColor: type_colour(s.place), borderWidth: 1,
          ...(thin ? { barThickness: 2.5 } : {}),
        })),
      },
      options: {
        scales: {
          x: {
            title: { display: true, text: "error in ULP", color: colour("soft") },
            ticks: { color: colour("soft"), maxRotation: 0 }, grid: { display: false, borderColor: colour("line") },
          },
          y: log_axis("share of the values, %", low, 100, decades(low, 100), plain),
        },
        plugins: {
          legend: { ...legend(() => true), labels: { color: colour("ink"), padding: 14, boxWidth: 22 } },
          tooltip: {
            displayColors: false,
            callbacks: { title: (items) => items[0].label + " ULP", label: (item) => item.dataset.texts[item.dataIndex] },
          },
        },
      },
    };
  }

  // A chart counts as drawn when marks, lines or bars stand between its axes, where they alone have the series'
  // colours: axes and a legend are no chart. Read from a copy, as reading a canvas back makes the browser slow it down.
  function is_drawn({ canvas, chartArea: area, currentDevicePixelRatio: scale }) {
    const copy = document.createElement("canvas");
    copy.width = Math.ceil((area.right - area.left) * scale);
    copy.height = Math.ceil((area.bottom - area.top) * scale);
    const ctx = copy.getContext("2d", { willReadFrequently: true });
    ctx.drawImage(canvas, -area.left * scale, -area.top * scale);
    const pixels = ctx.getImageData(0, 0, copy.width, copy.height).data;
    const names = [...Array.from({ length: kTypeColours }, (_, i) => "c" + i),
      ...Array.from({ length: kKernelColours }, (_, i) => "k" + i)];
    const wanted = names.map((name) => parseInt(colour(name).slice(1), 16))
      .map((rgb) => [rgb >> 16, (rgb >> 8) & 255, rgb & 255]);
    let found = 0;
    for (let p = 0; p < pixels.length; p += 4)
      if (pixels[p + 3] > 127 && wanted.some((rgb) => rgb.every((v, i) => Math.abs(v - pixels[p + i]) < 4))) ++found;
    return found >= 20;
  }

  const charts = [];

  function add(id, make, choices) {
    const canvas = document.getElementById(id);
    if (!canvas) return;
    const one = { canvas, make, choice: choices.first, chart: null, drawn: false };
    charts.push(one);
    if (choices.build) canvas.closest("figure").prepend(choices.build((value) => { one.choice = value; draw(one); }));
    draw(one);
  }

  function draw(one) {
    const failed = one.canvas.closest("figure").querySelector(".failed");
    try {
      if (one.chart) one.chart.destroy();
      one.chart = null;
      const config = one.make(one.choice, one.canvas);
      Object.assign(config.options, { responsive: true, maintainAspectRatio: false, animation: false });
      one.chart = new Chart(one.canvas, config);
      one.drawn = is_drawn(one.chart);
    } catch (error) {
      one.drawn = false;
      console.error("chart " + one.canvas.id + ": " + error);
    }
    failed.hidden = one.drawn;
    root.dataset.charts = charts.filter((c) => c.drawn).length;
  }

  function thread_choice(name, lists) {
    const all = [...new Set(lists.flat().map((one) => one.threads))].sort((a, b) => a - b);
    const first = all[all.length - 1];
    if (all.length < 2) return { first };
    return {
      first,
      build(choose) {
        const box = document.createElement("fieldset");
        box.className = "choice";
        const legend_text = document.createElement("legend");
        legend_text.textContent = "Threads";
        box.append(legend_text);
        for (const threads of all) {
          const label = document.createElement("label"), input = document.createElement("input");
          Object.assign(input, { type: "radio", name, value: threads, checked: threads === first });
          input.addEventListener("change", () => choose(threads));
          label.append(input, String(threads));
          box.append(label);
        }
        return box;
      },
    };
  }

  // One of several by name, the first chosen.
  function choice(what, names) {
    if (names.length < 2) return { first: 0 };
    return {
      first: 0,
      build(choose) {
        const label = document.createElement("label"), select = document.createElement("select");
        label.className = "choice";
        names.forEach((name, i) => select.add(new Option(name, i)));
        select.addEventListener("change", () => choose(Number(select.value)));
        label.append(what + " ", select);
        return label;
      },
    };
  }

  function kernel_choice() {
    const names = data.ulp.groups.map((group) => group.name);
    return choice("Kernel", names.length < 3 ? names.slice(0, 1) : names);  // "all kernels" and the only one
  }

  // Whether a table has more columns than are in sight.
  function hint_at_columns() {
    for (const hint of document.querySelectorAll(".more")) {
      const box = hint.nextElementSibling;
      hint.style.display = box.scrollWidth > box.clientWidth + 1 ? "block" : "none";
    }
  }

  function start() {
    Chart.register(labels_plugin, upright_plugin);
    Chart.Interaction.modes.nearest_point = nearest_point;
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 13;
    if (data.roofline) add("roofline", roofline, choice("Data", data.roofline.views.map((view) => view.name)));
    if (data.speed) add("speed", speed, thread_choice("speed-threads", [data.speed.series]));
    if (data.ulp) add("ulp", ulp, kernel_choice());
    const redraw = () => charts.forEach(draw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    // Labels and ticks are chosen for the width, so a turned phone needs them anew.
    let was_narrow = narrow();
    window.addEventListener("resize", () => { if (narrow() !== was_narrow) { was_narrow = narrow(); redraw(); } });
  }

  // For tests and for whoever looks into the page: how many charts were to be drawn, and were.
  root.dataset.charts = 0;
  hint_at_columns();
  window.addEventListener("resize", hint_at_columns);
  document.addEventListener("toggle", hint_at_columns, true);  // a table in <details> has no width while they are closed
  root.dataset.canvases = document.querySelectorAll("canvas").length;
  try {
    start();
  } catch (error) {
    console.error("charts: " + error);
    for (const failed of document.querySelectorAll(".failed")) failed.hidden = charts.some((c) => c.drawn && c.canvas.closest("figure").contains(failed));
  }
  root.dataset.overflow = root.scrollWidth - root.clientWidth;
})();
