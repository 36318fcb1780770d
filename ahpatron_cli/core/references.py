"""Publications of the learners: the one place from which texts and BibTeX entries are made."""

from __future__ import annotations

from dataclasses import dataclass

_JMLR = "Journal of Machine Learning Research"
_NIPS = "Advances in Neural Information Processing Systems"
_AAAI = "Proceedings of the AAAI Conference on Artificial Intelligence"
_SIGNAL = "IEEE Transactions on Signal Processing"
_ACCENTS = str.maketrans({"ò": r"{\`o}", "é": r"{\'e}"})
"""Letters that classic BibTeX cannot sort, in the notation of LaTeX."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A paper in a journal or in the proceedings of a conference, or a manuscript.

    Attributes
    ----------
    authors : tuple of str
        Each as "Given Family".
    venue : str
        The journal, or the title of the proceedings; for a manuscript, where it was submitted.
    in_journal : bool
        False for a paper in proceedings, unless these have volumes with numbers, as a journal has:
        an entry `@inproceedings` of BibTeX has one of them only.
    published : bool
        False for a manuscript.
    volume, number, pages : str
        Empty if unknown. Pages are written with a hyphen, as in "386-408".
    doi : str
        Without the address of the resolver; empty if it was not looked up.
    """

    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    in_journal: bool = False
    published: bool = True
    volume: str = ""
    number: str = ""
    pages: str = ""
    doi: str = ""

    @property
    def text(self) -> str:
        """The publication as one line of plain text."""
        place = self.venue
        if self.volume:
            place += f" {self.volume}"
        if self.number:
            place += f"({self.number})"
        if self.pages:
            place += f", {self.pages}"
        text = f"{', '.join(self.authors)}. {self.title}. {place}, {self.year}."
        if self.doi:
            text += f" https://doi.org/{self.doi}"
        return text

    def bibtex(self, key: str) -> str:
        """The BibTeX entry with this key, in ASCII."""
        kind = "inproceedings"
        venue = "booktitle"
        if not self.published:
            kind = "unpublished"
            venue = "note"
        elif self.in_journal:
            kind = "article"
            venue = "journal"
        entries = {
            "author": " and ".join(self.authors),
            "title": f"{{{self.title}}}",  # inner braces keep capital letters
            venue: self.venue,
            "volume": self.volume,
            "number": self.number,
            "pages": self.pages.replace("-", "--"),
            "year": str(self.year),
            "doi": self.doi,
        }
        lines = [f"  {name} = {{{value}}}," for name, value in entries.items() if value]
        return "\n".join([f"@{kind}{{{key},", *lines, "}"]).translate(_ACCENTS)


PUBLICATIONS: dict[str, Publication] = {
    "cavallanti2007": Publication(
        authors=("Giovanni Cavallanti", "Nicolò Cesa-Bianchi", "Claudio Gentile"),
        title="Tracking the best hyperplane with a simple budget Perceptron",
        venue="Machine Learning",
        in_journal=True,
        volume="69",
        number="2-3",
        pages="143-167",
        year=2007,
    ),
    "cheng2006": Publication(
        authors=(
            "Li Cheng",
            "S. V. N. Vishwanathan",
            "Dale Schuurmans",
            "Shaojun Wang",
            "Terry Caelli",
        ),
        title="Implicit online learning with kernels",
        venue=_NIPS,
        volume="19",
        pages="249-256",
        year=2006,
    ),
    "crammer2003": Publication(
        authors=("Koby Crammer", "Jaz Kandola", "Yoram Singer"),
        title="Online classification on a budget",
        venue=_NIPS,
        volume="16",
        pages="225-232",
        year=2003,
    ),
    "crammer2009": Publication(
        authors=("Koby Crammer", "Alex Kulesza", "Mark Dredze"),
        title="Adaptive regularization of weight vectors",
        venue=_NIPS,
        volume="22",
        pages="414-422",
        year=2009,
    ),
    "dekel2008": Publication(
        authors=("Ofer Dekel", "Shai Shalev-Shwartz", "Yoram Singer"),
        title="The Forgetron: A kernel-based Perceptron on a budget",
        venue="SIAM Journal on Computing",
        in_journal=True,
        volume="37",
        number="5",
        pages="1342-1372",
        doi="10.1137/060666998",
        year=2008,
    ),
    "engel2004": Publication(
        authors=("Yaakov Engel", "Shie Mannor", "Ron Meir"),
        title="The kernel recursive least-squares algorithm",
        venue=_SIGNAL,
        in_journal=True,
        volume="52",
        number="8",
        pages="2275-2285",
        year=2004,
    ),
    "freund1999": Publication(
        authors=("Yoav Freund", "Robert E. Schapire"),
        title="Large margin classification using the Perceptron algorithm",
        venue="Machine Learning",
        in_journal=True,
        volume="37",
        number="3",
        pages="277-296",
        year=1999,
    ),
    "gentile2001": Publication(
        authors=("Claudio Gentile",),
        title="A new approximate maximal margin classification algorithm",
        venue=_JMLR,
        in_journal=True,
        volume="2",
        pages="213-242",
        year=2001,
    ),
    "kivinen2004": Publication(
        authors=("Jyrki Kivinen", "Alexander J. Smola", "Robert C. Williamson"),
        title="Online learning with kernels",
        venue=_SIGNAL,
        in_journal=True,
        volume="52",
        number="8",
        pages="2165-2176",
        year=2004,
    ),
    "koppel2019": Publication(
        authors=("Alec Koppel", "Garrett Warnell", "Ethan Stump", "Alejandro Ribeiro"),
        title="Parsimonious online learning with kernels via sparse projections in function space",
        venue=_JMLR,
        in_journal=True,
        volume="20",
        number="3",
        pages="1-44",
        year=2019,
    ),
    "li2023": Publication(
        authors=("Junfan Li", "Shizhong Liao"),
        title="Improved kernel alignment regret bound for online kernel learning",
        venue=_AAAI,
        in_journal=True,
        volume="37",
        number="7",
        pages="8597-8604",
        doi="10.1609/aaai.v37i7.26035",
        year=2023,
    ),
    "li2024": Publication(
        authors=("Junfan Li", "Shizhong Liao"),
        title="Nearly optimal and sub-linear algorithms for online kernel learning via online "
        "greedy sparsification",
        venue=f"Submitted to {_JMLR}",
        published=False,
        year=2024,
    ),
    "liao2024": Publication(
        authors=("Yun Liao", "Junfan Li", "Shizhong Liao", "Qinghua Hu", "Jianwu Dang"),
        title="Ahpatron: A New Budgeted Online Kernel Learning Machine with Tighter Mistake Bound",
        venue=_AAAI,
        in_journal=True,
        volume="38",
        number="12",
        pages="13782-13789",
        doi="10.1609/aaai.v38i12.29284",
        year=2024,
    ),
    "lu2016": Publication(
        authors=("Jing Lu", "Steven C. H. Hoi", "Jialei Wang", "Peilin Zhao", "Zhi-Yong Liu"),
        title="Large scale online kernel learning",
        venue=_JMLR,
        in_journal=True,
        volume="17",
        number="47",
        pages="1-43",
        year=2016,
    ),
    "orabona2008": Publication(
        authors=("Francesco Orabona", "Joseph Keshet", "Barbara Caputo"),
        title="The Projectron: A bounded kernel-based Perceptron",
        venue="Proceedings of the 25th International Conference on Machine Learning",
        pages="720-727",
        year=2008,
    ),
    "page1954": Publication(
        authors=("E. S. Page",),
        title="Continuous inspection schemes",
        venue="Biometrika",
        in_journal=True,
        volume="41",
        number="1/2",
        pages="100-115",
        year=1954,
    ),
    "rosenblatt1958": Publication(
        authors=("Frank Rosenblatt",),
        title="The Perceptron: A probabilistic model for information storage and organization "
        "in the brain",
        venue="Psychological Review",
        in_journal=True,
        volume="65",
        number="6",
        pages="386-408",
        year=1958,
    ),
    "wang2010": Publication(
        authors=("Zhuang Wang", "Slobodan Vucetic"),
        title="Online passive-aggressive algorithms on a budget",
        venue="Proceedings of the 13th International Conference on Artificial Intelligence and "
        "Statistics",
        pages="908-915",
        year=2010,
    ),
    "wang2012": Publication(
        authors=("Zhuang Wang", "Koby Crammer", "Slobodan Vucetic"),
        title="Breaking the curse of kernelization: Budgeted stochastic gradient descent for "
        "large-scale SVM training",
        venue=_JMLR,
        in_journal=True,
        volume="13",
        pages="3103-3131",
        year=2012,
    ),
    "weston2005": Publication(
        authors=("Jason Weston", "Antoine Bordes", "Léon Bottou"),
        title="Online (and offline) on an even tighter budget",
        venue="Proceedings of the 10th International Workshop on Artificial Intelligence and "
        "Statistics",
        pages="413-420",
        year=2005,
    ),
    "wen2025": Publication(
        authors=(
            "Dongxie Wen",
            "Xiao Zhang",
            "Zhewei Wei",
            "Chenping Hou",
            "Shuai Li",
            "Weinan Zhang",
        ),
        title="Fast second-order online kernel learning through incremental matrix sketching and "
        "decomposition",
        venue="Proceedings of the 34th International Joint Conference on Artificial Intelligence",
        pages="6552-6560",
        year=2025,
    ),
    "zhang2019": Publication(
        authors=("Xiao Zhang", "Shizhong Liao"),
        title="Incremental randomized sketching for online kernel learning",
        venue="Proceedings of the 36th International Conference on Machine Learning",
        pages="7394-7403",
        year=2019,
    ),
    "zhao2012": Publication(
        authors=("Peilin Zhao", "Jialei Wang", "Pengcheng Wu", "Rong Jin", "Steven C. H. Hoi"),
        title="Fast bounded online gradient descent algorithms for scalable kernel-based online "
        "learning",
        venue="Proceedings of the 29th International Conference on Machine Learning",
        year=2012,
    ),
}
"""All publications by key, the name of the first author and the year."""
