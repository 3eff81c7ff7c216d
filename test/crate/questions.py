"""Ask a crate what the working group of Workflow Run RO-Crate asks of crates: questions.py CRATE.

The questions are the competency questions of https://www.researchobject.org/workflow-run-crate.
What counts as an answer is said in the profiles; the queries are written for this test. It prints the
answers as JSON, by the number of the question.
"""

import json
import sys

import rdflib

from terms import inline

PREFIXES = """
PREFIX s: <http://schema.org/>
PREFIX bio: <https://bioschemas.org/>
PREFIX wf: <https://bioschemas.org/ComputationalWorkflow#>
PREFIX run: <https://w3id.org/ro/terms/workflow-run#>
PREFIX meta: <https://codemeta.github.io/terms/>
"""
ROOT = "?root a s:Dataset ; s:mainEntity ?workflow ; s:mentions ?whole . ?workflow a bio:ComputationalWorkflow . " \
       "?whole a s:CreateAction ; s:instrument ?workflow ."

QUESTIONS = {
    # Which container images were used?
    "1": "SELECT ?name ?kind { " + ROOT + " ?whole run:containerImage ?image . "
         "?image a run:ContainerImage ; s:name ?name ; s:additionalType ?kind }",
    # How much memory and processor time was used?
    "2": "SELECT ?job ?what ?value ?unit { ?action a s:CreateAction ; s:name ?job ; run:resourceUsage ?used . "
         "?used s:name ?what ; s:propertyID ?id ; s:value ?value ; s:unitCode ?unit }",
    # Which configuration files had the engine?
    "3": "SELECT ?file { ?organized a s:OrganizeAction ; s:object ?file . "
         "FILTER NOT EXISTS { ?file a s:ControlAction } }",
    # Which files say what is in the environment of a step?
    "4": "SELECT ?step ?file { ?workflow s:step ?s . ?s a s:HowToStep ; s:name ?step ; meta:buildInstructions ?f . "
         "?f a s:MediaObject ; s:name ?file }",
    # How long did each component take?
    "5": "SELECT ?job ?start ?end { ?action a s:CreateAction ; s:name ?job ; s:instrument ?tool ; s:startTime ?start ; "
         "s:endTime ?end . ?tool a s:SoftwareApplication }",
    # How long did the workflow take?
    "6": "SELECT ?start ?end { " + ROOT + " ?whole s:startTime ?start ; s:endTime ?end }",
    # Did it succeed?
    "7": "SELECT ?name ?status { ?action a s:CreateAction ; s:name ?name ; s:actionStatus ?status }",
    # What are inputs and outputs of the whole?
    "8": "SELECT ?role ?name { " + ROOT + " { ?whole s:object ?f . BIND('in' AS ?role) } UNION "
         "{ ?whole s:result ?f . BIND('out' AS ?role) } ?f s:name ?name }",
    # Which version of a component was executed?
    "9": "SELECT ?name ?version { ?tool a s:SoftwareApplication ; s:name ?name ; s:softwareVersion ?version }",
    # What does a component need besides?
    "10": "SELECT ?tool ?program { ?t a s:SoftwareApplication ; s:name ?tool ; s:softwareRequirements ?p . "
          "?action s:instrument ?t . ?p s:name ?program }",
    # How were parameters of the workflow used by its components?
    "11": "SELECT ?parameter ?tool ?value { " + ROOT + " ?workflow wf:input ?p ; s:step ?step . "
          "?p a bio:FormalParameter ; s:name ?parameter . ?whole s:object ?value_ . ?value_ s:exampleOfWork ?p ; "
          "s:name ?value . ?step run:connection ?c . ?c a run:ParameterConnection ; run:sourceParameter ?p ; "
          "run:targetParameter ?to . ?step s:workExample ?t . ?t s:name ?tool ; wf:input ?to }",
}


def main():
    graph = rdflib.Graph()
    graph.parse(data=json.dumps(inline(sys.argv[1])), format="json-ld", publicID="https://crate.example/")
    answers = {number: sorted([str(v) for v in row] for row in graph.query(PREFIXES + query))
               for number, query in QUESTIONS.items()}
    print(json.dumps(answers))


main()
