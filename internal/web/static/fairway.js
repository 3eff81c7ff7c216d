// What pages do beside htmx: they stay up to date, show logs as they grow, and draw lines over time.
// Nothing is decided here, and no text becomes markup but that of the server's own templates.
"use strict";
(() => {
	// Streams are open only while the page is looked at: a browser has few connections for a server.
	const streams = new Map(); // element: {source, open}

	function follow(element, url, handlers) {
		if (streams.has(element)) return;
		const stream = {source: null};
		stream.open = () => {
			if (stream.source || stream.over) return;
			stream.source = new EventSource(url());
			for (const [kind, handle] of Object.entries(handlers)) stream.source.addEventListener(kind, handle);
			stream.source.addEventListener("end", (e) => {
				stream.over = true;
				stream.close();
				if (e.data) stale(e.data);
			});
			stream.source.onerror = () => { if (handlers.page) stale("The server does not answer. It may have ended."); };
			stream.source.onopen = () => stale("");
		};
		stream.close = () => { stream.source?.close(); stream.source = null; };
		streams.set(element, stream);
		if (!document.hidden) stream.open();
	}

	function stale(text) {
		const line = document.getElementById("stale");
		line.textContent = text;
		line.hidden = !text;
	}

	document.addEventListener("visibilitychange", () => {
		for (const stream of streams.values()) document.hidden ? stream.close() : stream.open();
	});

	let said = "";
	function tell() {
		const news = document.querySelector("[data-news]")?.dataset.news ?? "";
		if (said && news && news !== said) document.getElementById("news").textContent = news;
		said = news || said;
	}

	const pieces = 2000; // of a log that stay on the page
	function log(element) {
		follow(element, () => { element.replaceChildren(); return element.dataset.log; }, {log: (e) => {
			const piece = JSON.parse(e.data);
			const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 30;
			const span = document.createElement("span");
			if (piece.error) span.className = "error";
			span.textContent = piece.text;
			element.append(span);
			while (element.childElementCount > pieces) element.firstElementChild.remove();
			if (atEnd) element.scrollTop = element.scrollHeight;
		}});
	}

	// Charts. The lines are sums: computing, with staging, with waiting.
	const plots = new Map(); // element: {plot, timer}
	const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

	async function load(element) {
		const state = plots.get(element);
		if (!element.isConnected) { state.plot?.destroy(); plots.delete(element); return; }
		if (!document.hidden) {
			try {
				const answer = await (await fetch(element.dataset.series, {credentials: "same-origin"})).json();
				draw(element, state, answer);
				if (answer.over) return;
			} catch { /* the server is away: the next time tells */ }
		}
		state.timer = setTimeout(load, 5000, element);
	}

	function draw(element, state, answer) {
		const data = [answer.data[0] ?? [], answer.data[3] ?? [], answer.data[2] ?? [], answer.data[1] ?? []];
		if (data[0].length < 2) return;
		if (state.plot && !state.anew) { state.plot.setData(data); return; }
		state.plot?.destroy();
		state.anew = false;
		const axis = {stroke: colour("dim"), grid: {stroke: colour("line"), width: 1}, ticks: {stroke: colour("line"), width: 1}};
		const area = (label, name) => ({label, stroke: colour(name), fill: colour(name), width: 1, points: {show: false},
			paths: uPlot.paths.stepped({align: 1})});
		state.plot = new uPlot({
			width: element.clientWidth - 18, height: 220,
			legend: {show: false}, cursor: {show: false},
			scales: {y: {range: (_, low, high) => [0, Math.max(1, high * 1.08)]}},
			axes: [axis, {...axis, size: 44}],
			series: [{}, area("waiting", "idle"), area("staging", "staging"), area("computing", "computing")],
		}, data, element);
		state.plot.root.setAttribute("role", "img");
		state.plot.root.setAttribute("aria-label", "Slots over time; the page of slots has the figures");
	}

	function redraw() {
		for (const [element, state] of plots) { state.anew = true; clearTimeout(state.timer); load(element); }
	}
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	let resized;
	addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redraw, 200); });

	// scan takes care of what is new on the page, and lets go what has left it.
	function scan() {
		for (const [element, stream] of streams) {
			if (!element.isConnected) { stream.close(); streams.delete(element); }
		}
		for (const element of document.querySelectorAll("[data-live]")) {
			follow(element, () => element.dataset.live, {page: (e) => {
				Idiomorph.morph(element, e.data, {morphStyle: "innerHTML", ignoreActiveValue: true, callbacks: {
					beforeNodeMorphed: (old) => !(old instanceof Element && (old.matches(".plot, .log"))),
				}});
				scan();
				tell();
			}});
		}
		for (const element of document.querySelectorAll("[data-log]")) log(element);
		for (const element of document.querySelectorAll("[data-series]")) {
			if (!plots.has(element)) { plots.set(element, {}); load(element); }
		}
	}

	document.addEventListener("submit", (e) => {
		const question = e.target.dataset?.confirm;
		if (question && !confirm(question)) e.preventDefault();
	});
	document.addEventListener("htmx:afterSettle", scan);
	addEventListener("pagehide", () => { for (const stream of streams.values()) stream.close(); });
	scan();
	tell();
})();
